#include <cmath>
#include <cstdlib>
#include <string>

#include "check.hpp"
#include "data/svmlight_text.hpp"

namespace multimargin {

namespace {

double number(const std::string& token) {
    double value = 0.0;
    CHECK(read_number(token, value));
    return value;
}

bool is_number(const std::string& token) {
    double value = 0.0;
    return read_number(token, value);
}

}  // namespace

TEST(row_text_numbers_are_those_of_the_library) {
    for (const char* token : {"0",
                              "1",
                              "-1",
                              "+2",
                              "0.5",
                              ".5",
                              "5.",
                              "1e3",
                              "1E-3",
                              "-2.5e+02",
                              "123456789012345678901234567890",
                              "0.1",
                              "3.141592653589793238462643383279",
                              "1e22",
                              "1e23",
                              "9007199254740993",
                              "0.30000000000000004",
                              "2.2250738585072014e-308",
                              "1.7976931348623157e308",
                              "4.9e-324",
                              "0000000000000000000000000001.5",
                              "0.000000000000000000000000000000000000000000000001"}) {
        CHECK(number(token) == std::strtod(token, nullptr));
    }
    CHECK(std::signbit(number("-0")));
    CHECK(number("1e-400") == 0.0);
    CHECK(number("0.0001e-99999999999") == 0.0);
}

TEST(row_text_what_is_no_finite_number) {
    for (const char* token : {"", "+", "-", ".", "e5", "1e", "1e+", "1.2.3", "1,5", "0x10", "nan", "inf", "-inf",
                              "1e400", "1_000", "--1", "1e5.", "12a", "-1e99999999999999"}) {
        CHECK(!is_number(token));
    }
    CHECK(!is_number(std::string(400, '9')));
    CHECK(!is_number(std::string("1\0", 2)));
}

TEST(row_text_reads_rows) {
    const TextRows rows = read_rows("1 1:0.5 3:-2 # note 7:8\n\n  # only a note\n-1\r\n+2\t2:1e1 \r\n3 1:1", 1);
    CHECK(rows.fault == TextFault::none);
    CHECK((rows.labels == std::vector<double>{1.0, -1.0, 2.0, 3.0}));
    CHECK((rows.values == std::vector<double>{0.5, -2.0, 10.0, 1.0}));
    CHECK((rows.indices == std::vector<std::int64_t>{1, 3, 2, 1}));
    CHECK((rows.starts == std::vector<std::int64_t>{0, 2, 2, 3, 4}));
}

TEST(row_text_tells_the_first_fault) {
    const auto check = [](const std::string& text, TextFault fault, const std::string& token, std::int64_t first) {
        const std::string whole = "1 1:1\n\n" + text + "\n1 nonsense";
        const TextRows rows = read_rows(whole, first);
        CHECK(rows.fault == fault);
        CHECK(rows.fault_line == 2);
        CHECK(rows.fault_token == token);
        CHECK(rows.labels.size() == 1);
        CHECK(rows.values.size() == 1);
        CHECK(rows.indices.size() == 1);
    };
    check("a 1:1", TextFault::label, "a", 1);
    check("nan 1:1", TextFault::label, "nan", 1);
    check("1 2:1 5", TextFault::pair, "5", 1);
    check("1 1:1 x:1", TextFault::index, "x:1", 1);
    check("1 0:1", TextFault::index, "0:1", 1);
    check("1 -1:1", TextFault::index, "-1:1", 0);
    check("1 2147483648:1", TextFault::index, "2147483648:1", 1);
    check("1 99999999999999999999:1", TextFault::index, "99999999999999999999:1", 1);
    check("1 :1", TextFault::index, ":1", 1);
    check("1 2:1 2:1", TextFault::order, "2:1", 1);
    check("1 2:1 1:1", TextFault::order, "1:1", 1);
    check("1 1:", TextFault::value, "1:", 1);
    check("1 1:inf", TextFault::value, "1:inf", 1);
    check("1 1:2:3", TextFault::value, "1:2:3", 1);
    CHECK(read_rows("1 0:1 2147483647:2", 0).fault == TextFault::none);
    CHECK(read_rows("", 1).labels.empty());
}

}  // namespace multimargin
