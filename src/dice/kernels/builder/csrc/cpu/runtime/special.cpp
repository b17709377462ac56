// Special functions that <cmath> lacks.
#include <cmath>
#include <limits>

#include "../include/dice_cpu/abi.h"

namespace {

// Newton steps on erfc(x) = y from Giles' approximation of erfinv (M. Giles, "Approximating the erfinv function", 2012).
double first_guess(double x) {
    double w = -std::log((1 - x) * (1 + x));
    if (w < 5) {
        w -= 2.5;
        const double c[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941};
        double p = c[0];
        for (int i = 1; i < 9; ++i) p = p * w + c[i];
        return p * x;
    }
    w = std::sqrt(w) - 3;
    const double c[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682};
    double p = c[0];
    for (int i = 1; i < 9; ++i) p = p * w + c[i];
    return p * x;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) double dice_cpu_erfinv(double y) {
    if (!(std::fabs(y) <= 1)) return std::numeric_limits<double>::quiet_NaN();
    if (std::fabs(y) == 1) return std::copysign(std::numeric_limits<double>::infinity(), y);
    double x = first_guess(y);
    for (int i = 0; i < 3; ++i) {
        const double error = y >= 0 ? (1 - y) - std::erfc(x) : std::erf(x) - y;
        const double slope = 2 / std::sqrt(M_PI) * std::exp(-x * x);
        if (slope == 0) break;
        x -= error / slope;
    }
    return x;
}

__attribute__((visibility("default"))) double dice_cpu_erfcinv(double y) {
    if (!(y >= 0 && y <= 2)) return std::numeric_limits<double>::quiet_NaN();
    if (y == 0) return std::numeric_limits<double>::infinity();
    if (y == 2) return -std::numeric_limits<double>::infinity();
    if (y > 1) return -dice_cpu_erfcinv(2 - y);
    double x = y > 1e-15 ? dice_cpu_erfinv(1 - y) : std::sqrt(-std::log(y * std::sqrt(M_PI)));
    for (int i = 0; i < 6; ++i) {
        const double slope = -2 / std::sqrt(M_PI) * std::exp(-x * x);
        if (slope == 0) break;
        const double step = (std::erfc(x) - y) / slope;
        x -= step / (1 + x * step);  // Halley
    }
    return x;
}

__attribute__((visibility("default"))) double dice_cpu_erfcx(double x) {
    if (x < 25) return std::exp(x * x) * std::erfc(x);
    const double r = 1 / (x * x);  // asymptotic series; its fifth term is below 1e-11 here
    return 1 / (x * std::sqrt(M_PI)) * (1 - r / 2 * (1 - 1.5 * r * (1 - 2.5 * r * (1 - 3.5 * r))));
}

__attribute__((visibility("default"))) double dice_cpu_bessel_i(int order, double x) {
    const double a = std::fabs(x), value = std::cyl_bessel_i(static_cast<double>(order), a);
    return order % 2 == 1 && x < 0 ? -value : value;
}
}
