"""A call that does not return costs its limit, not the process."""

from __future__ import annotations

import threading

import pytest

from lakehouse_core.store.patience import Patience


def test_a_result_and_an_error_pass_through() -> None:
    patience = Patience(30)
    assert patience.call(lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        patience.call(lambda: 1 // 0)


def test_a_call_that_hangs_is_left_behind_and_others_go_on() -> None:
    patience, released = Patience(0.05), threading.Event()
    with pytest.raises(TimeoutError, match="no answer"):
        patience.call(released.wait)
    assert patience.call(lambda: "next") == "next"
    released.set()


def test_hanging_calls_do_not_pile_up() -> None:
    patience, released = Patience(0.01), threading.Event()
    for _ in range(8):
        with pytest.raises(TimeoutError, match="no answer"):
            patience.call(released.wait)
    with pytest.raises(TimeoutError, match="8 earlier questions"):
        patience.call(released.wait)
    released.set()
    for thread in threading.enumerate():
        if thread.name == "store-call":
            thread.join(30)
    assert Patience(30).call(lambda: 1) == 1
    assert patience.call(lambda: 1) == 1
