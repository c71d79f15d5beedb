// Rows as text, the format of LIBSVM and svmlight: "label index:value index:value ... # comment", a row on each line.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace multimargin {

// label, value: no finite number. pair: no colon. index: no whole number from the first allowed one to 2^31 - 1.
// order: not above the index before it.
enum class TextFault { none, label, pair, index, order, value };

struct TextRows {
    std::vector<double> labels;
    std::vector<double> values;
    std::vector<std::int64_t> indices;       // as they are written, each row's ascending
    std::vector<std::int64_t> starts = {0};  // of the rows in values and indices, and the end
    TextFault fault = TextFault::none;       // the first; the rows are those before it
    Index fault_line = 0;                    // counted from 0
    std::string_view fault_token;
};

// Reads whole lines; empty ones and those with a comment only are no rows.
TextRows read_rows(std::string_view text, std::int64_t first_index);

// Reads a decimal number, which must be all of the token, and correctly rounded; false if it is none or not finite.
bool read_number(std::string_view token, double& value);

}  // namespace multimargin
