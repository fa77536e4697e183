// Feeds texts from standard input to the reader of samples, each in memory of exactly the size that
// it is promised, so that a sanitizer sees the first byte beyond. A text comes behind its length in
// eight bytes; the answer is the number of lists and the length of the skeleton, eight bytes each.

#include <cstdint>
#include <cstdio>
#include <memory>

extern "C" int64_t rancast_cut(const char* text, int64_t size, const char* where, char* skeleton,
                               int64_t most_skeleton, int64_t* skeleton_size, double* values,
                               int64_t most_values, int64_t* notes, int64_t most_notes);
extern "C" int64_t rancast_most_members(const char* text, int64_t size);

// Of all routes together: series, rows, and named lists of any depth.
constexpr char kPlaces[] = "1{[{{ 2{[ 8{[{data 2{[{series ";

int main() {
  int64_t size = 0;
  while (std::fread(&size, sizeof size, 1, stdin) == 1) {
    const std::unique_ptr<char[]> text(new char[size]);
    if (std::fread(text.get(), 1, size, stdin) != static_cast<size_t>(size)) return 2;
    const std::unique_ptr<char[]> skeleton(new char[2 * size]);
    const int64_t most_values = size / 2 + 1;
    const int64_t most_notes = size / 2 + 8;
    const std::unique_ptr<double[]> values(new double[most_values]);
    const std::unique_ptr<int64_t[]> notes(new int64_t[most_notes]);
    int64_t answer[2] = {0, 0};
    answer[0] = rancast_cut(text.get(), size, kPlaces, skeleton.get(), 2 * size, &answer[1],
                            values.get(), most_values, notes.get(), most_notes);
    if (rancast_most_members(text.get(), size) < 0) return 4;
    if (answer[0] >= 0 && answer[1] > 2 * size) return 3;
    if (std::fwrite(answer, sizeof answer, 1, stdout) != 1) return 2;
    std::fflush(stdout);
  }
  return 0;
}
