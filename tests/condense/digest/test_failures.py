import pytest

from refold._condense.digest.failures import failing, failing_places, failure_line
from refold.core.messages import Text, ToolResult

PYTEST = """=================== FAILURES ===================
___________________ test_one ___________________
    def test_one():
>       assert load() == 2
E       assert 1 == 2
tests/test_a.py:4: AssertionError
=========== short test summary info ============
FAILED tests/test_a.py::test_one - assert 1 == 2
1 failed, 3 passed in 0.12s"""
UNITTEST = """FAIL: test_one (tests.test_a.Store)
----------------------------------------------
Traceback (most recent call last):
  File "tests/test_a.py", line 4, in test_one
AssertionError: 1 != 2

FAILED (failures=1)"""
GO = """--- FAIL: TestLoad (0.00s)
    store_test.go:12: got 1, want 2
FAIL
FAIL\texample.com/x/store\t0.01s
FAIL"""
CARGO = """test store::tests::loads ... FAILED
failures:
---- store::tests::loads stdout ----
thread 'store::tests::loads' panicked at src/store.rs:9:5:
assertion failed
test result: FAILED. 3 passed; 1 failed"""
JEST = """FAIL src/store.test.ts
  ● Store › loads
    expect(received).toBe(expected)
    Expected: 2
    Received: 1
Tests: 1 failed, 3 passed, 4 total"""
VITEST = """ FAIL  src/store.test.ts > Store > loads
AssertionError: expected 1 to be 2
 Tests  1 failed | 3 passed (4)"""
MOCHA = """  3 passing (9ms)
  1 failing

  1) Store loads:

      AssertionError: expected 1 to equal 2"""
CTEST = """The following tests FAILED:
\t  3 - store_loads (Failed)
Errors while running CTest"""
MAVEN = """[ERROR] Failures:
[ERROR]   StoreTest.loads:12 expected: <2> but was: <1>
[INFO] BUILD FAILURE"""
GRADLE = """StoreTest > loads() FAILED
    org.opentest4j.AssertionFailedError: expected: <2> but was: <1>
BUILD FAILED in 1s"""
RSPEC = """Failures:
  1) Store loads
     Failure/Error: expect(load).to eq(2)
       expected: 2
rspec ./spec/store_spec.rb:4 # Store loads"""
NODE = """✖ Store loads (1.2ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal"""
TSC = "src/store.ts(4,5): error TS2322: Type 'number' is not assignable to type 'string'."


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PYTEST, "test_one, tests/test_a.py::test_one: E assert 1 == 2"),
        (UNITTEST, "test_one (tests.test_a.Store): AssertionError: 1 != 2"),
        (GO, "TestLoad: store_test.go:12: got 1, want 2"),
        (CARGO, "store::tests::loads: thread 'store::tests::loads' panicked at src/store.rs:9:5: assertion failed"),
        (JEST, "src/store.test.ts, Store › loads: Expected: 2"),
        (VITEST, "src/store.test.ts > Store > loads: AssertionError: expected 1 to be 2"),
        (MOCHA, "Store loads: AssertionError: expected 1 to equal 2"),
        (CTEST, "store_loads"),
        (MAVEN, "StoreTest.loads:12 expected: <2> but was: <1>"),
        (GRADLE, "StoreTest > loads(): org.opentest4j.AssertionFailedError: expected: <2> but was: <1>"),
        (RSPEC, "./spec/store_spec.rb:4: expected: 2"),
        (NODE, "Store loads: AssertionError [ERR_ASSERTION]: Expected values to be strictly equal"),
        (TSC, "src/store.ts(4,5): error TS2322: Type 'number' is not assignable to type 'string'."),
    ],
)
def test_the_test_that_failed_and_the_line_that_says_why_are_named(text, line):
    assert failure_line(ToolResult("c", (Text(text),))) == line


def test_of_many_tests_the_first_are_named_and_their_files_are_known():
    text = "\n".join(f"FAILED tests/test_{name}.py::test_it" for name in "abcde")
    result = ToolResult("c", (Text(text),))
    assert failure_line(result).startswith("tests/test_a.py::test_it, ")
    assert "test_c.py::test_it and 2 more" in failure_line(result)
    assert failing_places(result) == tuple(f"tests/test_{name}.py" for name in "abcde")
    assert failing_places(ToolResult("c", (Text(GO),))) == ("example.com/x/store",)


def test_an_output_without_failures_names_none():
    assert failing(ToolResult("c", (Text("3 passed in 1s\nall 0 failed"),))) == ()
