// LIBLINEAR's `train` as a program, where only its library can be had: text is read twice, once to count and once line
// by line with the C library's functions, into one array of all entries; then LIBLINEAR trains and saves the model.
// Called as `train -s SOLVER -e TOLERANCE TEXT MODEL`; everything else is as LIBLINEAR has it when nothing is said.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "linear.h"

namespace {

// One line at a time, in a buffer that grows with the longest.
class Lines {
 public:
  explicit Lines(const char* path) : file_(std::fopen(path, "r")) {
    if (!file_) std::exit(1);
  }
  ~Lines() {
    std::fclose(file_);
    std::free(line_);
  }
  char* next() { return getline(&line_, &size_, file_) < 0 ? nullptr : line_; }
  void rewind() { std::rewind(file_); }

 private:
  std::FILE* file_;
  char* line_ = nullptr;
  std::size_t size_ = 0;
};

// What a problem points to.
struct Rows {
  std::vector<double> labels;
  std::vector<feature_node*> starts;
  std::vector<feature_node> entries;
  int n_features = 0;
};

void count(Lines& lines, Rows& rows) {
  std::size_t n_rows = 0, n_entries = 0;
  while (char* line = lines.next()) {
    std::strtok(line, " \t");
    for (char* token = std::strtok(nullptr, " \t"); token && *token != '\n'; token = std::strtok(nullptr, " \t"))
      ++n_entries;
    ++n_entries;  // what ends the row
    ++n_rows;
  }
  rows.labels.resize(n_rows);
  rows.starts.resize(n_rows);
  rows.entries.reserve(n_entries);
  lines.rewind();
}

void read(Lines& lines, Rows& rows) {
  for (std::size_t i = 0; i < rows.labels.size(); ++i) {
    char* line = lines.next();
    rows.starts[i] = rows.entries.data() + rows.entries.size();
    rows.labels[i] = std::strtod(std::strtok(line, " \t\n"), nullptr);
    while (true) {
      char* index = std::strtok(nullptr, ":");
      char* value = std::strtok(nullptr, " \t");
      if (!value) break;
      rows.entries.push_back({static_cast<int>(std::strtol(index, nullptr, 10)), std::strtod(value, nullptr)});
      if (rows.entries.back().index > rows.n_features) rows.n_features = rows.entries.back().index;
    }
    rows.entries.push_back({-1, 0.0});
  }
}

void be_silent(const char*) {}

}  // namespace

int main(int n, char** arguments) {
  if (n != 7) return 2;
  Rows rows;
  {
    Lines lines(arguments[5]);
    count(lines, rows);
    read(lines, rows);
  }
  problem data{};
  data.l = static_cast<int>(rows.labels.size());
  data.n = rows.n_features;
  data.y = rows.labels.data();
  data.x = rows.starts.data();
  data.bias = -1;
  parameter chosen{};
  chosen.solver_type = std::atoi(arguments[2]);
  chosen.eps = std::atof(arguments[4]);
  chosen.C = 1;
  chosen.p = 0.1;
  chosen.nu = 0.5;
  chosen.regularize_bias = 1;
  set_print_string_function(be_silent);
  if (check_parameter(&data, &chosen)) return 1;
  model* trained = train(&data, &chosen);
  return save_model(arguments[6], trained) ? 1 : 0;
}
