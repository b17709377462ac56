// A table of bound functions that needs no pybind11 in the candidate's unit.
//
// The unit describes each function by plain data (`Function`): its address, a typed thunk that calls it, and the codes
// of its types. `dice_create_module` in the support library (binding.cpp, compiled once per machine) makes real
// pybind11 functions of them with pybind11's own casters. A type without a code does not compile here, and the builder
// then takes the route with real pybind11.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/Layout.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

struct _object;

namespace dice_binding {

using Code = std::int16_t;
constexpr Code kVoid = -1;

template <class T>
struct CodeOf;  // no definition: this type has no code

template <>
struct CodeOf<void> {
  static constexpr Code value = kVoid;
};

enum : int {
#define DICE_COUNTER_START __COUNTER__
  kFirst = DICE_COUNTER_START + 1
};
#define X(...)                                                \
  template <>                                                 \
  struct CodeOf<__VA_ARGS__> {                                \
    static constexpr Code value = Code(__COUNTER__ - kFirst); \
  };
#include "binding_types.inl"
#undef X

// `function` is the address to call; `arguments` points to one value per parameter; `result` to raw storage in which
// the result is constructed.
using Thunk = void (*)(void* function, void** arguments, void* result);

struct Argument {
  const char* name;           // py::arg's name
  const void* default_value;  // a value with code `default_code`, or nullptr
  Code default_code;
  bool noconvert;
};

struct Function {
  const char* name;
  const char* doc;  // nullptr: none
  void* function;
  Thunk thunk;
  const Code* parameters;
  int parameter_count;
  Code result;
  bool torch_errors;  // as torch::wrap_pybind_function
  const Argument* arguments;  // nullptr: unnamed
};

template <class P>
struct Pass {  // how a caster's value reaches a parameter of type P
  using Value = std::remove_cv_t<std::remove_reference_t<P>>;
  static P from(void* value) {
    if constexpr (std::is_lvalue_reference_v<P>) {
      return *static_cast<Value*>(value);
    } else {
      return std::move(*static_cast<Value*>(value));
    }
  }
};

template <class R, class... P, std::size_t... I>
void call(R (*function)(P...), [[maybe_unused]] void** arguments, [[maybe_unused]] void* result,
          std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    function(Pass<P>::from(arguments[I])...);
  } else {
    new (result) R(function(Pass<P>::from(arguments[I])...));
  }
}

template <class R, class... P>
Function describe(const char* name, R (*function)(P...), const char* doc, bool torch_errors,
                  const Argument* arguments = nullptr) {
  static_assert(!std::is_reference_v<R>, "results by reference are bound by pybind11");
  static constexpr Code parameters[] = {CodeOf<typename Pass<P>::Value>::value..., kVoid};
  Thunk thunk = [](void* f, void** a, void* r) {
    call(reinterpret_cast<R (*)(P...)>(f), a, r, std::index_sequence_for<P...>{});
  };
  return {name,       doc, reinterpret_cast<void*>(function), thunk, parameters, int(sizeof...(P)),
          CodeOf<std::remove_cv_t<R>>::value, torch_errors, arguments};
}

template <class Lambda, class = decltype(+std::declval<Lambda>())>
Function describe(const char* name, Lambda lambda, const char* doc, bool torch_errors,
                  const Argument* arguments = nullptr) {
  return describe(name, +lambda, doc, torch_errors, arguments);
}

template <class T>
Argument argument(const char* name, const T* default_value, bool noconvert = false) {
  return {name, default_value, CodeOf<T>::value, noconvert};
}

inline Argument argument(const char* name, bool noconvert = false) {
  return {name, nullptr, kVoid, noconvert};
}

}  // namespace dice_binding

// Defined in the support library. `name` is used unless the loader asked for another (dice_name_next_module).
extern "C" _object* dice_create_module(const char* name, const char* doc, const dice_binding::Function* functions,
                                       int count);
