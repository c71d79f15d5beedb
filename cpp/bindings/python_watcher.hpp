// A solve watched from Python.
#pragma once

#include <functional>

#include "arrays.hpp"
#include "base/monitor.hpp"

namespace multimargin::bindings {

// Raises a Ctrl-C: one that the handler raises, or one that waits for a solver to poll (base/interrupts.py).
inline void raise_pending_signal() {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    nb::module_::import_("multimargin.base.interrupts").attr("poll")();
}

// Asks Python: pending signals first, then the caller's function. An exception ends the solve and is kept.
class PythonWatcher final : public Watcher {
  public:
    // `state` returns what the caller's function gets when it asks for a snapshot.
    PythonWatcher(nb::object function, std::function<nb::object()> state)
        : function_(std::move(function)), state_(std::move(state)) {}

    Verdict watch(const Progress& progress, const std::function<void()>& synchronize) override {
        const AcquiredGil gil;
        if (!gil.held()) return Verdict::interrupted;
        try {
            raise_pending_signal();
            if (function_.is_none()) return Verdict::go_on;
            const nb::object snapshot = nb::cpp_function([this, synchronize] {
                synchronize();
                return state_();
            });
            return nb::cast<bool>(function_(progress, snapshot)) ? Verdict::callback : Verdict::go_on;
        } catch (nb::python_error& raised) {
            error = nb::borrow(raised.value());
            return Verdict::interrupted;
        }
    }

    bool wants_detail() const override { return !function_.is_none(); }

    nb::object error = nb::none();

  private:
    nb::object function_;
    std::function<nb::object()> state_;
};

// Ctrl-C during a long prediction; one that waits for a solver goes on waiting.
class SignalWatcher final : public Watcher {
  public:
    Verdict watch(const Progress&, const std::function<void()>&) override {
        const AcquiredGil gil;
        if (!gil.held()) return Verdict::interrupted;
        if (PyErr_CheckSignals() == 0) return Verdict::go_on;
        pending = true;
        return Verdict::interrupted;
    }
    bool pending = false;
};

}  // namespace multimargin::bindings
