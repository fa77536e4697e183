// Cuts the lists of samples out of a request's JSON text: their numbers go into one array of
// doubles, and what is left, the skeleton, has `[i]` where list i was. A samples list stands where
// four containers are open: the body, its list of series, a series, and its object of KPIs. Whoever
// reads the skeleton checks that these are what they should be.
//
// Called through ctypes; holds no state and allocates nothing.

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>

namespace {

constexpr int kMostDepth = 32;
constexpr int kSamplesDepth = 4;
constexpr char kAbove[kSamplesDepth] = {'{', '[', '{', '{'};
constexpr double kLargest = std::numeric_limits<float>::max();
constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
// Up to here integers and powers of ten are doubles without rounding, so one operation on them
// rounds once, which is correct (Clinger, "How to read floating point numbers accurately", 1990).
constexpr int kExactDigits = 15;
constexpr int kExactPower = 22;
constexpr double kPowers[kExactPower + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

struct Reader {
  const char* at;
  const char* const end;

  bool more() const { return at < end; }
  char peek() const { return at < end ? *at : '\0'; }
  void skip_space() {
    while (more() && is_space(*at)) ++at;
  }

  // Past the closing quote of the string that begins here; false where there is none.
  bool skip_string() {
    for (++at; more(); ++at) {
      if (*at == '"') {
        ++at;
        return true;
      }
      if (*at == '\\') ++at;
    }
    return false;
  }

  // One number by JSON's grammar (RFC 8259, section 6) that a float can hold.
  bool read_number(double* value) {
    const char* const begin = at;
    const bool negative = peek() == '-';
    if (negative) ++at;
    if (!is_digit(peek())) return false;
    uint64_t digits = 0;
    int count = 0;
    int power = 0;
    if (*at == '0') {
      ++at;
    } else {
      for (; is_digit(peek()); ++at, ++count) digits = digits * 10 + (*at - '0');
    }
    if (is_digit(peek())) return false;  // 01
    if (peek() == '.') {
      ++at;
      const char* const fraction = at;
      for (; is_digit(peek()); ++at) {
        digits = digits * 10 + (*at - '0');
        if (digits != 0) ++count;
        --power;
      }
      if (at == fraction) return false;
    }
    bool plain = true;
    if (peek() == 'e' || peek() == 'E') {
      plain = false;
      ++at;
      if (peek() == '+' || peek() == '-') ++at;
      if (!is_digit(peek())) return false;
      while (is_digit(peek())) ++at;
    }
    if (plain && count <= kExactDigits && -power <= kExactPower) {
      const double size = static_cast<double>(digits) / kPowers[-power];
      // -0 is an integer, which has no sign there; -0.0 keeps its own.
      *value = negative && (digits != 0 || power != 0) ? -size : size;
      return size <= kLargest;
    }
    const auto [last, trouble] = std::from_chars(begin, at, *value);
    return trouble == std::errc() && last == at && *value >= -kLargest && *value <= kLargest;
  }

  // The list that begins here: at least one number or null. The end of its values, or nullptr.
  double* read_list(double* values) {
    ++at;
    while (true) {
      skip_space();
      if (peek() == 'n') {
        if (end - at < 4 || std::memcmp(at, "null", 4) != 0) return nullptr;
        at += 4;
        *values++ = kMissing;
      } else if (read_number(values)) {
        ++values;
      } else {
        return nullptr;
      }
      skip_space();
      const char next = peek();
      ++at;
      if (next == ']') return values;
      if (next != ',') return nullptr;
    }
  }
};

}  // namespace

// The number of lists, or -1 where any of them is not plainly good.
extern "C" int64_t rancast_cut(
    const char* text, int64_t size,
    char* skeleton,          // (2 * size)
    int64_t* skeleton_size,  // its length
    double* values,          // (size / 2 + 1), NaN for null
    int64_t* ends) {         // (size / 3 + 1), end of each list in `values`
  Reader reader{text, text + size};
  const char* copied = text;
  char* out = skeleton;
  double* value = values;
  int64_t lists = 0;
  char open[kMostDepth];
  int depth = 0;
  const auto copy_to = [&](const char* last) {
    std::memcpy(out, copied, last - copied);
    out += last - copied;
    copied = last;
  };
  while (reader.more()) {
    const char c = *reader.at;
    if (c == '"') {
      if (!reader.skip_string()) return -1;
      continue;
    }
    if (c == '[' && depth == kSamplesDepth && std::memcmp(open, kAbove, kSamplesDepth) == 0) {
      copy_to(reader.at);
      value = reader.read_list(value);
      if (value == nullptr) return -1;
      copied = reader.at;
      ends[lists] = value - values;
      // A list in an object has a key and fits; one that stands where no JSON has it may not.
      char* const most = skeleton + 2 * size - (reader.end - copied);
      if (most - out < 3) return -1;
      *out++ = '[';
      const auto [number_end, trouble] = std::to_chars(out, most - 1, lists);
      if (trouble != std::errc()) return -1;
      out = number_end;
      *out++ = ']';
      ++lists;
      continue;
    }
    if (c == '{' || c == '[') {
      if (depth == kMostDepth) return -1;
      open[depth++] = c;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return -1;
      --depth;
    }
    ++reader.at;
  }
  copy_to(reader.end);
  *skeleton_size = out - skeleton;
  return lists;
}
