#!/bin/sh
# Tests total.sh; prints each failure and exits with 1 if there is one.
failures=0

check() {
  expected=$1
  shift
  actual=$(sh ./total.sh "$@")
  if [ "$actual" != "$expected" ]; then
    echo "total.sh $*: expected $expected, but it is $actual"
    failures=$((failures + 1))
  fi
}

check 0 10
check 2000 0 1500 500
check 2200 10 1500 500
check 1150 15 1000

[ "$failures" -eq 0 ] && echo "all tests pass"
exit $((failures > 0))
