// Calls of CUDA's libraries, carried out by PyTorch's operators.
#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>

namespace dice_cpu {

// Whether `body` ran without an error of PyTorch's. On a GPU no operator of ATen runs there, so none is seen here.
template <class Body>
bool runs(const Body& body) {
    try {
        at::NoGradGuard no_grad;
        c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot}));
        body();
        return true;
    } catch (const c10::Error&) {
        return false;
    }
}

}  // namespace dice_cpu
