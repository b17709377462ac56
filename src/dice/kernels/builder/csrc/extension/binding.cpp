// The support library's half of binding.h: pybind11 functions made from a table, with pybind11's casters and torch's
// translation of exceptions. Follows `pybind11::cpp_function::initialize` and `torch::wrap_pybind_function`.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <new>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "binding.h"

namespace py = pybind11;
using dice_binding::Argument;
using dice_binding::Code;
using dice_binding::Function;
using dice_binding::kVoid;

namespace {

struct Loaded {  // an argument that was converted from Python
  virtual ~Loaded() = default;
  virtual bool load(py::handle source, bool convert) = 0;
  virtual void* value() = 0;
};

template <class T>
struct LoadedAs final : Loaded {
  using Caster = py::detail::make_caster<T>;
  static constexpr bool kByReference =
      std::is_lvalue_reference_v<decltype(py::detail::cast_op<T&>(std::declval<Caster&>()))>;
  Caster caster;
  std::optional<T> copy;  // tuples are put together anew by their caster
  bool load(py::handle source, bool convert) override { return caster.load(source, convert); }
  void* value() override {
    if constexpr (kByReference) {
      return &py::detail::cast_op<T&>(caster);
    } else {
      return &copy.emplace(py::detail::cast_op<T>(caster));
    }
  }
};

struct Type {
  std::unique_ptr<Loaded> (*make)();
  py::handle (*cast)(void* value, py::return_value_policy policy, py::handle parent);
  void (*destroy)(void* value);
  std::size_t size;
  std::string argument_text;
  std::string result_text;
  std::vector<const std::type_info*> types;
};

template <class T>
Type type_of() {
  using Caster = py::detail::make_caster<T>;
  constexpr auto argument = py::detail::type_descr(Caster::name);
  constexpr auto result = py::detail::const_name("") + Caster::name;
  std::vector<const std::type_info*> types;
  const auto listed = decltype(result)::types();  // an array, ended by a null pointer
  types.assign(listed.begin(), listed.end() - 1);
  return {[]() -> std::unique_ptr<Loaded> { return std::make_unique<LoadedAs<T>>(); },
          [](void* value, py::return_value_policy policy, py::handle parent) {
            return Caster::cast(std::move(*static_cast<T*>(value)),
                                py::detail::return_value_policy_override<T>::policy(policy), parent);
          },
          [](void* value) { static_cast<T*>(value)->~T(); },
          sizeof(T),
          argument.text,
          result.text,
          std::move(types)};
}

const Type& type_at(Code code) {
  static const std::vector<Type> types = {
#define X(...) type_of<__VA_ARGS__>(),
#include "binding_types.inl"
#undef X
  };
  return types.at(static_cast<std::size_t>(code));
}

bool without_gil = false;  // while a mode of Python's records operators, which a pool of threads may call for the function

void run(const Function& function, void** arguments, void* result) {
  std::optional<py::gil_scoped_release> released;
  if (without_gil) {
    released.emplace();
  }
  function.thunk(function.function, arguments, result);
}

void invoke(const Function& function, void** arguments, void* result) {
  if (!function.torch_errors) {
    run(function, arguments, result);
    return;
  }
  HANDLE_TH_ERRORS
  run(function, arguments, result);
  END_HANDLE_TH_ERRORS_PYBIND
}

struct Storage {  // raw room for a result; destroys what was constructed in it
  explicit Storage(Code code) : type(code == kVoid ? nullptr : &type_at(code)) {
    if (type != nullptr) {
      memory = ::operator new(type->size, std::align_val_t(alignof(std::max_align_t)));
    }
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage() {
    if (constructed) {
      type->destroy(memory);
    }
    ::operator delete(memory, std::align_val_t(alignof(std::max_align_t)));
  }
  const Type* type;
  void* memory = nullptr;
  bool constructed = false;
};

PyObject* watcher = nullptr;  // a callable, or null: then calls cost nothing more

void tell_watcher(const Function& function, const py::detail::function_call& call) {
  py::tuple arguments(static_cast<py::size_t>(function.parameter_count));
  for (int i = 0; i < function.parameter_count; ++i) {
    arguments[static_cast<py::size_t>(i)] = call.args[i];
  }
  py::reinterpret_borrow<py::object>(watcher)(function.name, arguments);
}

py::handle dispatch(py::detail::function_call& call) {
  const auto& function = *static_cast<const Function*>(call.func.data[0]);
  std::vector<std::unique_ptr<Loaded>> loaded;
  std::vector<void*> arguments;
  for (int i = 0; i < function.parameter_count; ++i) {
    loaded.push_back(type_at(function.parameters[i]).make());
    if (!loaded.back()->load(call.args[i], call.args_convert[i])) {
      return PYBIND11_TRY_NEXT_OVERLOAD;
    }
  }
  for (auto& argument : loaded) {
    arguments.push_back(argument->value());
  }
  if (watcher != nullptr) {
    tell_watcher(function, call);
  }
  Storage storage(function.result);
  invoke(function, arguments.data(), storage.memory);
  if (storage.type == nullptr) {
    return py::none().release();
  }
  storage.constructed = true;
  return storage.type->cast(storage.memory, call.func.policy, call.parent);
}

class TableFunction : public py::cpp_function {
 public:
  TableFunction(const Function& function, py::handle module) {
    using namespace py::detail;
    auto record = make_function_record();
    record->data[0] = const_cast<Function*>(&function);
    record->impl = dispatch;
    record->nargs_pos = static_cast<std::uint16_t>(function.parameter_count);
    record->has_args = false;
    record->has_kwargs = false;
    process_attribute<py::name>::init(py::name(function.name), record.get());
    process_attribute<py::scope>::init(py::scope(module), record.get());
    process_attribute<py::sibling>::init(py::sibling(py::getattr(module, function.name, py::none())), record.get());
    if (function.doc != nullptr) {
      process_attribute<const char*>::init(function.doc, record.get());
    }
    for (int i = 0; function.arguments != nullptr && i < function.parameter_count; ++i) {
      add_argument(function.arguments[i], record.get());
    }
    std::vector<const std::type_info*> types;
    std::string text = signature(function, types);
    types.push_back(nullptr);
    initialize_generic(std::move(record), text.c_str(), types.data(),
                       static_cast<std::size_t>(function.parameter_count));
  }

 private:
  static void add_argument(const Argument& argument, py::detail::function_record* record) {
    py::arg named(argument.name);
    named.noconvert(argument.noconvert);
    if (argument.default_value == nullptr) {
      py::detail::process_attribute<py::arg>::init(named, record);
      return;
    }
    const Type& type = type_at(argument.default_code);
    auto value = py::reinterpret_steal<py::object>(type.cast(const_cast<void*>(argument.default_value),
                                                             py::return_value_policy::automatic, {}));
    if (!value) {
      throw py::error_already_set();
    }
    py::detail::process_attribute<py::arg_v>::init(named = std::move(value), record);
  }

  static std::string signature(const Function& function, std::vector<const std::type_info*>& types) {
    std::string text = "(";
    for (int i = 0; i < function.parameter_count; ++i) {
      const Type& type = type_at(function.parameters[i]);
      text += (i > 0 ? ", " : "") + type.argument_text;
      types.insert(types.end(), type.types.begin(), type.types.end());
    }
    text += ") -> ";
    if (function.result == kVoid) {
      return text + "None";
    }
    const Type& result = type_at(function.result);
    types.insert(types.end(), result.types.begin(), result.types.end());
    return text + result.result_text;
  }
};

thread_local std::string next_module_name;

}  // namespace

extern "C" __attribute__((visibility("default"))) void dice_name_next_module(const char* name) {
  next_module_name = name;
}

namespace {

// `callable` is told the name and the arguments of every call; None ends it. Called with the GIL.
void watch_calls(PyObject* callable) {
  PyObject* before = watcher;
  watcher = callable == Py_None ? nullptr : Py_NewRef(callable);
  Py_XDECREF(before);
}

struct Control {
  void (*watch_calls)(PyObject* callable);
  bool* without_gil;
};

}  // namespace

// Whoever asks first gets it: the loader, before it loads the first object.
extern "C" __attribute__((visibility("default"))) const Control* dice_call_watching() {
  static const Control control = {watch_calls, &without_gil};
  static bool given = false;
  return std::exchange(given, true) ? nullptr : &control;
}

extern "C" __attribute__((visibility("default"))) PyObject* dice_create_module(const char* name, const char* doc,
                                                                               const Function* functions, int count) {
  PYBIND11_ENSURE_INTERNALS_READY
  try {
    // Both live as long as the process: CPython keeps the definition, pybind11 the name.
    auto* definition = new PyModuleDef();
    auto* kept_name = new std::string(next_module_name.empty() ? name : next_module_name);
    next_module_name.clear();
    auto module = py::module_::create_extension_module(kept_name->c_str(), doc, definition);
    for (int i = 0; i < count; ++i) {
      TableFunction function(functions[i], module);
      module.add_object(functions[i].name, function, true /* overwrite */);
    }
    return module.release().ptr();
  }
  PYBIND11_CATCH_INIT_EXCEPTIONS
  return nullptr;
}
