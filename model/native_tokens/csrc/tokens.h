// Tokens of one series, as model/tokens.py and model/copies.py define them, in one pass over it.
//
// Axis legend: T samples of history, S samples of context, N patches (context, then future),
// P patch, M future samples, F inputs of a token, R repeats of a period, C candidates.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace rancast {

constexpr float NOTHING = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t DAYS = 7, WEEKS = 4, MONTH = 28;
constexpr int64_t RECENT[] = {16, 64, 256};
constexpr float LEVELS[] = {0.1f, 0.5f, 0.9f};
constexpr double SMALLEST = 0.01, ZERO_CENTRED = 0.03, REACH = 8.0;

// Where each group of inputs begins in a token; below zero where it is left out.
struct Groups {
  int64_t value, day_lag, week_lag, day_mean, week_mean, month_mean, recent, calendar, scalars,
      planned, month_quantiles;
};

// Place of each candidate among the C; below zero where it is left out.
struct Candidates {
  int64_t day_lag, week_lag, day_mean, week_mean, month_mean, levelled_week_mean, day_median,
      week_median, month_median, last, mean_of_16, mean_of_64, mean_of_256, zero, holiday, event;
};

struct Plan {
  int64_t steps, patch, context_patches, future_patches, width, candidates;
  int64_t day, week;  // steps in a period, 0 where it is no season
  int64_t radius;     // of smoothing
  int64_t calendar_width, planned_width, planned_stride;
  float step_scalar, rate_scalar;
  Groups groups;
  Candidates copies;

  int64_t context() const { return context_patches * patch; }
  int64_t future() const { return future_patches * patch; }
  int64_t history() const { return std::max(steps, context()); }
};

struct Series {
  const float* values;    // (T)
  const float* calendar;  // (N, calendar_width)
  const float* planned;   // (N, planned_stride), of which planned_width enter
  float lower, upper;
  bool present;
};

struct Answer {
  float* inputs;   // (N, F), zeros
  bool* visible;   // (N)
  double* mean;    // one each
  double* spread;
  float* copies;   // (M, C), zeros
  bool* known;     // (M, C), false
};

struct Moments {
  float mean, spread, seen;
};

// Of `count` values at a distance of `stride`, NaN left out.
inline Moments moments(const float* values, int64_t count, int64_t stride = 1) {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const float v = values[i * stride]; !std::isnan(v)) sum += v, ++seen;
  const int64_t divisor = std::max<int64_t>(seen, 1);
  const double mean = sum / divisor;
  double square = 0;
  for (int64_t i = 0; i < count; ++i)
    if (const float v = values[i * stride]; !std::isnan(v)) square += (v - mean) * (v - mean);
  const float share = float(seen) / float(std::max<int64_t>(count, 1));
  return {float(mean), float(std::sqrt(square / divisor)), share};
}

// Sorted values without NaN; returns how many.
inline int64_t order(const float* values, int64_t count, float* sorted) {
  int64_t seen = 0;
  for (int64_t i = 0; i < count; ++i)
    if (!std::isnan(values[i])) sorted[seen++] = values[i];
  std::sort(sorted, sorted + seen);
  return seen;
}

inline float quantile(const float* sorted, int64_t seen, float level) {
  if (seen == 0) return NOTHING;
  const float place = float(seen - 1) * level, floor = std::floor(place);
  const float below = sorted[int64_t(floor)], above = sorted[int64_t(std::ceil(place))];
  return below + (above - below) * (place - floor);
}

class Tokeniser {
 public:
  explicit Tokeniser(const Plan& plan)
      : plan(plan),
        scaled(plan.history()),
        smooth(plan.history()),
        total(plan.history() + 1),
        count(plan.history() + 1) {}

  void run(const Series& series, const Answer& answer) {
    scale(series);
    smoothe();
    context_tokens(series, answer);
    lags(answer);
    scalars(series, answer);
    copy_rows(series, answer);
    future_tokens(answer);
    *answer.mean = mean;
    *answer.spread = spread;
  }

 private:
  const Plan& plan;
  std::vector<float> scaled, smooth;
  std::vector<double> total;
  std::vector<int64_t> count;
  double mean = 0, spread = 1, divisor = 1, size = 1;
  int64_t seen = 0;

  float into(double value) const { return float(std::asinh((value - mean) / divisor)); }

  void scale(const Series& series) {
    const int64_t length = plan.history(), lacking = length - plan.steps, context = plan.context();
    const float* recent = series.values + plan.steps - std::min(plan.steps, context);
    const int64_t kept = std::min(plan.steps, context);
    double sum = 0, square = 0;
    seen = 0;
    for (int64_t i = 0; i < kept; ++i)
      if (!std::isnan(recent[i])) sum += recent[i], ++seen;
    mean = sum / std::max<int64_t>(seen, 1);
    for (int64_t i = 0; i < kept; ++i)
      if (!std::isnan(recent[i])) square += (recent[i] - mean) * (recent[i] - mean);
    spread = std::max(std::sqrt(square / std::max<int64_t>(seen, 1)), SMALLEST * std::abs(mean));
    if (seen == 0) spread = 1;
    divisor = spread > 0 ? spread : 1;
    double absolute = 0;
    int64_t all = 0;
    for (int64_t i = 0; i < lacking; ++i) scaled[i] = NOTHING;
    for (int64_t i = 0; i < plan.steps; ++i) {
      const float v = series.values[i];
      scaled[lacking + i] = std::isnan(v) ? NOTHING : into(v);
      if (!std::isnan(v)) absolute += std::abs(double(v)), ++all;
    }
    size = all ? ZERO_CENTRED * absolute / all : 0;
    if (!(size > 0)) size = 1;
  }

  void smoothe() {
    const int64_t length = plan.history();
    if (plan.radius < 1) {
      std::copy(scaled.begin(), scaled.end(), smooth.begin());
      return;
    }
    for (int64_t i = 0; i < length; ++i) {
      const bool there = !std::isnan(scaled[i]);
      total[i + 1] = total[i] + (there ? scaled[i] : 0);
      count[i + 1] = count[i] + there;
    }
    for (int64_t i = 0; i < length; ++i) {
      const int64_t above = std::min(i + plan.radius + 1, length);
      const int64_t below = std::max<int64_t>(i - plan.radius, 0);
      const int64_t there = count[above] - count[below];
      smooth[i] = there ? float((total[above] - total[below]) / there) : NOTHING;
    }
  }

  // The samples `repeats` periods before a position.
  void lagged(int64_t position, int64_t period, int64_t repeats, float* out) const {
    const int64_t length = plan.history();
    const int64_t back = position < length ? 1 : (position - length) / period + 1;
    int64_t index = position - period * back;
    for (int64_t r = 0; r < repeats; ++r, index -= period)
      out[r] = index >= 0 ? smooth[index] : NOTHING;
  }

  float* token(const Answer& answer, int64_t patch) const {
    return answer.inputs + patch * plan.width;
  }

  // A sample beside its mask.
  void put(float* group, int64_t place, float value) const {
    if (std::isnan(value)) return;
    group[place] = value;
    group[plan.patch + place] = 1;
  }

  void context_tokens(const Series& series, const Answer& answer) const {
    const float* context = scaled.data() + plan.history() - plan.context();
    for (int64_t n = 0; n < plan.context_patches + plan.future_patches; ++n) {
      bool any = n >= plan.context_patches;
      if (!any) {
        for (int64_t p = 0; p < plan.patch; ++p) {
          const float v = context[n * plan.patch + p];
          any |= !std::isnan(v);
          if (plan.groups.value >= 0) put(token(answer, n) + plan.groups.value, p, v);
        }
      }
      answer.visible[n] = any && series.present;
    }
  }

  void lags(const Answer& answer) const {
    const Groups& g = plan.groups;
    const int64_t first = plan.history() - plan.context();
    float found[DAYS];
    for (int64_t m = 0; m < plan.context() + plan.future(); ++m) {
      float* row = token(answer, m / plan.patch);
      const int64_t p = m % plan.patch;
      const auto season = [&](int64_t period, int64_t repeats, int64_t lag, int64_t average) {
        if (period == 0 || (lag < 0 && average < 0)) return;
        lagged(first + m, period, repeats, found);
        if (lag >= 0) put(row + lag, p, found[0]);
        if (average < 0) return;
        const Moments of = moments(found, repeats);
        row[average + p] = of.mean;
        row[average + plan.patch + p] = of.spread;
        row[average + 2 * plan.patch + p] = of.seen;
      };
      season(plan.day, DAYS, g.day_lag, g.day_mean);
      season(plan.week, WEEKS, g.week_lag, g.week_mean);
    }
  }

  static float bounded(double v, double most) { return float(std::clamp(v, -most, most)); }

  float zero() const { return bounded(into(0), REACH); }

  void scalars(const Series& series, const Answer& answer) const {
    if (plan.groups.scalars < 0) return;
    const int64_t context = plan.context();
    const float* recent = scaled.data() + plan.history() - context;
    int64_t first = 0;
    while (first < context && std::isnan(recent[first])) ++first;
    const int64_t span = std::max<int64_t>(context - first, 1);
    const auto limit = [&](float v) { return std::isfinite(v) ? bounded(into(v), REACH) : 0.f; };
    const float shared[] = {
        plan.step_scalar,
        plan.rate_scalar,
        zero(),
        limit(series.lower),
        limit(series.upper),
        float(std::isfinite(series.upper)),
        bounded(std::log(divisor / std::max(std::abs(mean), 1e-30)), 5) / 2,
        1 - float(seen) / float(span),
        std::log1p(float(seen)) / 4,
    };
    for (int64_t n = 0; n < plan.context_patches + plan.future_patches; ++n) {
      float* group = token(answer, n) + plan.groups.scalars;
      std::copy(std::begin(shared), std::end(shared), group);
      group[9] = n >= plan.context_patches;
    }
  }

  void copy_rows(const Series& series, const Answer& answer) const {
    for (int64_t n = 0; n < plan.context_patches + plan.future_patches; ++n) {
      if (plan.groups.calendar >= 0)
        std::copy_n(series.calendar + n * plan.calendar_width, plan.calendar_width,
                    token(answer, n) + plan.groups.calendar);
      if (plan.groups.planned >= 0)
        std::copy_n(series.planned + n * plan.planned_stride, plan.planned_width,
                    token(answer, n) + plan.groups.planned);
    }
  }

  float recent_mean(const float* end, int64_t available, int64_t wanted) const {
    const int64_t taken = std::min(available, wanted);
    return moments(end - taken, taken).mean;
  }

  void future_tokens(const Answer& answer) const {
    const Groups& g = plan.groups;
    const Candidates& c = plan.copies;
    const int64_t length = plan.history(), context = plan.context();
    const float* end = scaled.data() + length;
    float last = 0, flat[3], month[MONTH], weeks[WEEKS], sorted[MONTH];
    for (int64_t i = 1; i <= context; ++i)
      if (!std::isnan(end[-i])) { last = end[-i]; break; }
    for (int i = 0; i < 3; ++i) flat[i] = recent_mean(end, context, RECENT[i]);
    const int64_t day = std::max<int64_t>(plan.day, 1);
    const float gained = c.levelled_week_mean >= 0 && plan.week
                             ? recent_mean(end, length, DAYS * day) -
                                   recent_mean(end, length, MONTH * day)
                             : 0.f;
    const float at_zero = zero();
    for (int64_t m = 0; m < plan.future(); ++m) {
      float* row = token(answer, plan.context_patches + m / plan.patch);
      const int64_t p = m % plan.patch;
      const auto offer = [&](int64_t place, float v) {
        if (place < 0 || std::isnan(v)) return;
        answer.copies[m * plan.candidates + place] = v;
        answer.known[m * plan.candidates + place] = true;
      };
      offer(c.last, last);
      offer(c.zero, at_zero);
      offer(c.mean_of_16, flat[0]);
      offer(c.mean_of_64, flat[1]);
      offer(c.mean_of_256, flat[2]);
      if (p == 0 && g.recent >= 0) {
        for (int64_t i = 0; i < 16; ++i) {
          const float v = 16 - i <= context ? end[i - 16] : NOTHING;
          if (!std::isnan(v)) row[g.recent + i] = v, row[g.recent + 16 + i] = 1;
        }
        std::copy_n(flat, 3, row + g.recent + 32);
      }
      const auto mean_of = [](const float* v, int64_t n, int64_t least) {
        const Moments of = moments(v, n);
        return std::lround(of.seen * n) >= least ? of.mean : NOTHING;
      };
      if (plan.day) {
        lagged(length + m, plan.day, MONTH, month);
        offer(c.day_lag, month[0]);
        offer(c.day_mean, mean_of(month, DAYS, 2));
        offer(c.month_mean, mean_of(month, MONTH, DAYS + 1));
        int64_t n = order(month, DAYS, sorted);
        offer(c.day_median, n >= 3 ? quantile(sorted, n, 0.5f) : NOTHING);
        n = order(month, MONTH, sorted);
        offer(c.month_median, n >= DAYS + 1 ? quantile(sorted, n, 0.5f) : NOTHING);
        if (g.month_mean >= 0) {
          const Moments of = moments(month, MONTH);
          row[g.month_mean + p] = of.mean;
          row[g.month_mean + plan.patch + p] = of.seen;
        }
        if (g.month_quantiles >= 0 && n) {
          for (int l = 0; l < 3; ++l) {
            const float v = quantile(sorted, n, LEVELS[l]);
            const double value = mean + spread * std::sinh(std::clamp(double(v), -REACH, REACH));
            row[g.month_quantiles + l * plan.patch + p] = v;
            row[g.month_quantiles + (3 + l) * plan.patch + p] = float(std::asinh(value / size) / 3);
          }
        }
      }
      if (plan.week) {
        lagged(length + m, plan.week, WEEKS, weeks);
        const float mean_of_weeks = mean_of(weeks, WEEKS, 2);
        offer(c.week_lag, weeks[0]);
        offer(c.week_mean, mean_of_weeks);
        offer(c.levelled_week_mean, mean_of_weeks + gained);
        const int64_t n = order(weeks, WEEKS, sorted);
        offer(c.week_median, n >= 3 ? quantile(sorted, n, 0.5f) : NOTHING);
      }
    }
  }
};

}  // namespace rancast
