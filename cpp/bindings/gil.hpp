// The interpreter's lock, given up for long work and taken back, also where the interpreter ends meanwhile.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace multimargin::bindings {

// A daemon thread that asks for the lock of an interpreter that is ending is ended within that call, by unwinding
// through destructors and handlers that forbid it: the process aborts. So from the end on no other thread than the one
// that ends asks; work stops at its next poll, and its thread sleeps until the process ends.
class InterpreterEnd {
  public:
    // Whether a thread may ask for the lock; if so, it says when it no longer needs the interpreter to stay.
    static bool enter() {
        ++inside_;
        if (!begun_ || std::this_thread::get_id() == ender_) return true;
        --inside_;
        return false;
    }
    static void leave() { --inside_; }

    // Called once, with the lock, before the interpreter ends. Waits a little for calls of Python functions to return.
    static void begin() {
        ender_ = std::this_thread::get_id();
        begun_ = true;
        PyThreadState* const state = PyEval_SaveThread();
        for (int i = 0; i < most_waits && inside_ > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        PyEval_RestoreThread(state);
    }

    [[noreturn]] static void rest() {
        while (true) std::this_thread::sleep_for(std::chrono::hours(1));
    }

  private:
    static constexpr int most_waits = 2000;
    static inline std::atomic<int> inside_{0};
    static inline std::atomic<bool> begun_{false};
    static inline std::thread::id ender_;
};

// Gives up the lock for its lifetime.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    ~ReleasedGil() {
        if (!InterpreterEnd::enter()) InterpreterEnd::rest();
        PyEval_RestoreThread(state_);
        InterpreterEnd::leave();
    }

  private:
    PyThreadState* state_;
};

// Takes the lock for its lifetime, unless the interpreter is ending.
class AcquiredGil {
  public:
    AcquiredGil() : held_(InterpreterEnd::enter()) {
        if (held_) state_ = PyGILState_Ensure();
    }
    AcquiredGil(const AcquiredGil&) = delete;
    AcquiredGil& operator=(const AcquiredGil&) = delete;
    ~AcquiredGil() {
        if (!held_) return;
        PyGILState_Release(state_);
        InterpreterEnd::leave();
    }

    bool held() const { return held_; }

  private:
    bool held_;
    PyGILState_STATE state_{};
};

}  // namespace multimargin::bindings
