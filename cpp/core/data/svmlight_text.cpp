#include "data/svmlight_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#ifndef __cpp_lib_to_chars
#include <locale>
#include <sstream>
#include <string>
#endif

namespace multimargin {

namespace {

constexpr std::int64_t largest_index = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t exact_integers = std::uint64_t{1} << 53;
// Powers of ten that a double holds exactly.
constexpr std::array<double, 23> powers_of_ten = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool is_space(char sign) { return sign == ' ' || sign == '\t' || sign == '\r' || sign == '\f' || sign == '\v'; }

bool is_digit(char sign) { return sign >= '0' && sign <= '9'; }

// A number as it is written: mantissa * 10^exponent, unless not all digits fitted.
struct Decimal {
    std::uint64_t mantissa = 0;
    int exponent = 0;
    bool negative = false;
    bool whole = true;  // whether the mantissa has all digits
};

// Takes the digits from `at` on into the number; returns how many there were.
std::size_t take_digits(std::string_view token, std::size_t& at, Decimal& number) {
    const std::size_t begin = at;
    for (; at < token.size() && is_digit(token[at]); ++at) {
        if (number.mantissa < exact_integers) {
            number.mantissa = 10 * number.mantissa + static_cast<std::uint64_t>(token[at] - '0');
        } else {
            number.whole = false;
        }
    }
    return at - begin;
}

// Reads e, E and what follows; large exponents are all the same.
bool take_exponent(std::string_view token, std::size_t& at, Decimal& number) {
    ++at;
    const bool negative = at < token.size() && token[at] == '-';
    if (at < token.size() && (token[at] == '-' || token[at] == '+')) ++at;
    if (at == token.size()) return false;
    int exponent = 0;
    for (; at < token.size() && is_digit(token[at]); ++at) {
        exponent = std::min(10 * exponent + (token[at] - '0'), 99999);
    }
    number.exponent += negative ? -exponent : exponent;
    return true;
}

bool take_apart(std::string_view token, Decimal& number) {
    std::size_t at = 0;
    if (!token.empty() && (token[0] == '-' || token[0] == '+')) {
        number.negative = token[0] == '-';
        ++at;
    }
    std::size_t n_digits = take_digits(token, at, number);
    if (at < token.size() && token[at] == '.') {
        ++at;
        const std::size_t decimals = take_digits(token, at, number);
        n_digits += decimals;
        // Only used where all digits fitted, so that there are few.
        number.exponent -= static_cast<int>(std::min<std::size_t>(decimals, 99999));
    }
    if (n_digits == 0) return false;
    if (at < token.size() && (token[at] == 'e' || token[at] == 'E') && !take_exponent(token, at, number)) return false;
    return at == token.size();
}

// The standard library's conversion, which rounds correctly whatever the number of digits.
double convert(std::string_view token, [[maybe_unused]] const Decimal& number) {
    if (token.front() == '+') token.remove_prefix(1);
    double value = 0.0;
#ifdef __cpp_lib_to_chars
    const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
    if (error == std::errc::result_out_of_range) {
        // Too large or too small: the library does not say which. Zeros in front do not count as digits.
        const auto first = std::find_if(token.begin(), token.end(), [](char s) { return s >= '1' && s <= '9'; });
        const auto point = std::find_if(token.begin(), token.end(), [](char s) { return s == '.' || (s | 32) == 'e'; });
        const bool large = number.exponent > 0 || (first < point && point - first > 300);
        return large ? infinity : 0.0;
    }
#else
    std::istringstream stream{std::string(token)};
    stream.imbue(std::locale::classic());
    stream >> value;
    if (stream.fail()) return std::abs(value) >= std::numeric_limits<double>::max() ? infinity : 0.0;
#endif
    return value;
}

struct Reader {
    TextRows rows;
    std::int64_t first_index;

    bool fail(TextFault fault, std::string_view token) {
        rows.fault = fault;
        rows.fault_token = token;
        return false;
    }

    bool take_pair(std::string_view token, std::int64_t& last) {
        const std::size_t colon = token.find(':');
        if (colon == std::string_view::npos) return fail(TextFault::pair, token);
        std::int64_t index = -1;
        const char* end = token.data() + colon;
        const auto [stopped, error] = std::from_chars(token.data(), end, index);
        if (stopped != end || error != std::errc{} || index < first_index || index > largest_index) {
            return fail(TextFault::index, token);
        }
        if (index <= last) return fail(TextFault::order, token);
        last = index;
        double value = 0.0;
        if (!read_number(token.substr(colon + 1), value)) return fail(TextFault::value, token);
        rows.indices.push_back(index);
        rows.values.push_back(value);
        return true;
    }

    // Returns whether the line is free of faults.
    bool take_line(std::string_view line) {
        line = line.substr(0, line.find('#'));
        std::size_t at = 0;
        const auto next_token = [&] {
            while (at < line.size() && is_space(line[at])) ++at;
            const std::size_t begin = at;
            while (at < line.size() && !is_space(line[at])) ++at;
            return line.substr(begin, at - begin);
        };
        const std::string_view label = next_token();
        if (label.empty()) return true;
        double value = 0.0;
        if (!read_number(label, value)) return fail(TextFault::label, label);
        std::int64_t last = -1;
        for (std::string_view token = next_token(); !token.empty(); token = next_token()) {
            if (!take_pair(token, last)) return false;
        }
        rows.labels.push_back(value);
        rows.starts.push_back(static_cast<std::int64_t>(rows.values.size()));
        return true;
    }
};

}  // namespace

bool read_number(std::string_view token, double& value) {
    Decimal number;
    if (!take_apart(token, number)) return false;
    if (number.whole && number.mantissa <= exact_integers && std::abs(number.exponent) <= 22) {
        // Both are exact, and so one rounding makes the nearest double (Clinger 1990).
        const double mantissa = static_cast<double>(number.mantissa);
        const double power = powers_of_ten[static_cast<std::size_t>(std::abs(number.exponent))];
        value = number.exponent < 0 ? mantissa / power : mantissa * power;
        if (number.negative) value = -value;
        return true;
    }
    value = convert(token, number);
    return std::isfinite(value);
}

TextRows read_rows(std::string_view text, std::int64_t first_index) {
    Reader reader{{}, first_index};
    Index line_number = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        if (!reader.take_line(text.substr(0, end))) {
            reader.rows.fault_line = line_number;
            const auto kept = static_cast<std::size_t>(reader.rows.starts.back());
            reader.rows.values.resize(kept);
            reader.rows.indices.resize(kept);
            break;
        }
        text.remove_prefix(std::min(end + 1, text.size()));
        ++line_number;
    }
    return std::move(reader.rows);
}

}  // namespace multimargin
