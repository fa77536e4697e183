// Cuts the lists of samples out of a request's JSON text: their numbers go into one array of
// doubles, and what is left, the skeleton, has `[i]` where list i was. Where lists of samples stand
// is told by the brackets that are open around them and the name before them. Whoever reads the
// skeleton checks that these are what they should be.
//
// Called through ctypes; holds no state and allocates nothing. It writes no further than the room
// that it is given, whatever the text is.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>

namespace {

constexpr int kMostDepth = 32;
constexpr int kMostLevels = 256;
constexpr int kMostPlaces = 4;
constexpr int kMostDimensions = 8;
constexpr int kNoted = 3;  // of each list before its lengths: end, wholeness, dimensions
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

  // One number by JSON's grammar (RFC 8259, section 6) that a float can hold; `whole` stays true
  // where it has neither fraction nor exponent, and few enough digits to be exact.
  inline __attribute__((always_inline)) bool read_number(double* value, bool* whole) {
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
    *whole &= power == 0 && count <= kExactDigits;
    if (peek() == 'e' || peek() == 'E') {
      plain = false;
      *whole = false;
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

  // The first letter in the list that begins here that is no bracket of a list.
  char first_leaf() const {
    const char* seen = at;
    while (seen < end && (*seen == '[' || is_space(*seen))) ++seen;
    return seen < end ? *seen : '\0';
  }
};

// Lists of numbers as they are read, in the caller's memory.
struct Lists {
  double* const values;
  const int64_t most_values;
  int64_t* const notes;
  const int64_t most_notes;
  int64_t count = 0;
  int64_t valued = 0;
  int64_t noted = 0;

  // The list that begins at the reader: at least one number or null, or such lists of one shape.
  // False where it is another, is nested more deeply, or there is no room for it.
  bool read(Reader* reader, int deepest) {
    int64_t lengths[kMostDimensions];  // -1 until the first list of a level was closed
    int64_t counted[kMostDimensions];
    int dimensions = 0;  // 0 until the first number
    int level = 0;
    bool whole = true;
    while (true) {
      reader->skip_space();
      if (reader->peek() == '[') {
        if (level == (dimensions == 0 ? deepest : dimensions)) return false;
        if (dimensions == 0) lengths[level] = -1;
        counted[level++] = 0;
        ++reader->at;
        continue;
      }
      if (dimensions == 0) dimensions = level;
      if (level != dimensions || !read_run(reader, &counted[level - 1], &whole)) return false;
      while (reader->peek() == ']') {
        ++reader->at;
        --level;
        if (lengths[level] < 0) lengths[level] = counted[level];
        if (lengths[level] != counted[level]) return false;
        if (level == 0) return note(lengths, dimensions, whole);
        ++counted[level - 1];
        reader->skip_space();
      }
      if (reader->peek() != ',') return false;
      ++reader->at;
    }
  }

 private:
  // Numbers and nulls up to the bracket that closes their list, and how many they are.
  bool read_run(Reader* reader, int64_t* count, bool* whole) {
    Reader here = *reader;  // a copy, and locals, stay in registers
    double* value = values + valued;
    const double* const last = values + most_values;
    bool all_whole = *whole;
    while (true) {
      here.skip_space();
      if (value == last) return false;
      if (here.peek() == 'n') {
        if (here.end - here.at < 4 || std::memcmp(here.at, "null", 4) != 0) return false;
        here.at += 4;
        *value = kMissing;
        all_whole = false;
      } else if (!here.read_number(value, &all_whole)) {
        return false;
      }
      ++value;
      here.skip_space();
      const char next = here.peek();
      if (next == ']') break;
      if (next != ',') return false;
      ++here.at;
    }
    *count = value - values - valued;
    valued = value - values;
    *whole = all_whole;
    reader->at = here.at;
    return true;
  }

  bool note(const int64_t* lengths, int dimensions, bool whole) {
    if (most_notes - noted < kNoted + dimensions) return false;
    notes[noted++] = valued;
    notes[noted++] = whole ? 1 : 0;
    notes[noted++] = dimensions;
    for (int i = 0; i < dimensions; ++i) notes[noted++] = lengths[i];
    ++count;
    return true;
  }
};

// What is left of the text, in the caller's memory.
struct Skeleton {
  char* const text;
  const int64_t most;
  int64_t size = 0;

  bool add(const char* begin, const char* end) {
    if (most - size < end - begin) return false;
    std::memcpy(text + size, begin, end - begin);
    size += end - begin;
    return true;
  }

  bool add_mark(int64_t number) {
    char mark[24];
    mark[0] = '[';
    char* last = std::to_chars(mark + 1, mark + sizeof mark - 1, number).ptr;
    *last++ = ']';
    return add(mark, last);
  }
};

// Where samples stand, written as `1{[{{` or `8{[{data`: how deep they may be nested, the brackets
// that are open around them, and the name before them where it is not any.
struct Place {
  int deepest;
  const char* above;
  int depth;
  const char* name;
  int64_t name_size;

  bool is_here(const char* open, int open_count) const {
    return open_count == depth && std::memcmp(open, above, depth) == 0;
  }
};

// Places that stand one behind another, each closed by a space; their number, or -1.
int read_places(const char* text, Place* places) {
  int count = 0;
  while (*text != '\0') {
    if (count == kMostPlaces) return -1;
    Place& place = places[count++];
    place.deepest = *text++ - '0';
    if (place.deepest < 1 || place.deepest > kMostDimensions) return -1;
    place.above = text;
    while (*text == '{' || *text == '[') ++text;
    place.depth = static_cast<int>(text - place.above);
    if (place.depth == 0) return -1;
    place.name = text;
    while (*text != ' ' && *text != '\0') ++text;
    place.name_size = text - place.name;
    if (*text++ != ' ') return -1;
  }
  return count;
}

}  // namespace

// The number of lists, or -1 where any of them is not plainly good, or there is no room for them.
// A list whose first element is a string is none of samples, and stays in the skeleton.
extern "C" int64_t rancast_cut(
    const char* text, int64_t size,
    const char* where,         // see `Place`
    char* skeleton,            // (most_skeleton)
    int64_t most_skeleton,
    int64_t* skeleton_size,    // its length
    double* values,            // (most_values), NaN for null
    int64_t most_values,
    int64_t* notes,            // (most_notes); of each list its end in `values`, whether all of it
    int64_t most_notes) {      // are whole numbers, its number of dimensions, and their lengths
  Place places[kMostPlaces];
  const int place_count = read_places(where, places);
  if (place_count < 0) return -1;
  Reader reader{text, text + size};
  Lists lists{values, most_values, notes, most_notes};
  Skeleton rest{skeleton, most_skeleton};
  const char* copied = text;
  const char* name = text;  // of the member that is read, if any
  const char* name_end = text;
  char before = '\0';  // the last letter that was no space
  char open[kMostDepth];
  int depth = 0;
  while (reader.more()) {
    const char c = *reader.at;
    if (is_space(c)) {
      ++reader.at;
      continue;
    }
    if (c == '"') {
      name = reader.at + 1;
      if (!reader.skip_string()) return -1;
      name_end = reader.at - 1;
      before = c;
      continue;
    }
    bool is_list = false;
    for (int i = 0; c == '[' && i < place_count; ++i) {
      const Place& place = places[i];
      if (!place.is_here(open, depth)) continue;
      const bool is_member = open[depth - 1] == '{';
      if (is_member ? before != ':' : before != '[' && before != ',') return -1;
      if (place.name_size != 0) {
        // A name that is spelt in another way could be this one.
        if (std::memchr(name, '\\', name_end - name) != nullptr) return -1;
        if (name_end - name != place.name_size) continue;
        if (std::memcmp(name, place.name, place.name_size) != 0) continue;
        if (reader.first_leaf() == '"') continue;
      }
      if (!rest.add(copied, reader.at) || !rest.add_mark(lists.count)) return -1;
      if (!lists.read(&reader, place.deepest)) return -1;
      copied = reader.at;
      is_list = true;
      break;
    }
    if (is_list) {
      before = ']';
      continue;
    }
    if (c == '{' || c == '[') {
      if (depth == kMostDepth) return -1;
      open[depth++] = c;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return -1;
      --depth;
    }
    before = c;
    ++reader.at;
  }
  if (!rest.add(copied, reader.end)) return -1;
  *skeleton_size = rest.size;
  return lists.count;
}

// The most members that any object of a text has; nonsense where the text is not JSON.
extern "C" int64_t rancast_most_members(const char* text, int64_t size) {
  Reader reader{text, text + size};
  int64_t commas[kMostLevels];  // of objects; those of lists are below 0 and not counted
  int depth = 0;
  int64_t most = 0;
  while (reader.more()) {
    const char c = *reader.at;
    if (c == '"') {
      if (!reader.skip_string()) break;
      continue;
    }
    ++reader.at;
    if (c == '{' || c == '[') {
      if (depth == kMostLevels) break;  // more than any reader of JSON here goes down
      commas[depth++] = c == '{' ? 0 : -1;
    } else if (c == '}' || c == ']') {
      if (depth == 0) break;
      --depth;
    } else if (c == ',' && depth > 0 && commas[depth - 1] >= 0) {
      most = std::max(most, ++commas[depth - 1] + 1);
    }
  }
  return most;
}
