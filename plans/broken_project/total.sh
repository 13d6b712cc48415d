#!/bin/sh
# Prints the total of a bill in cents: the prices, and a tip in percent.
#
#   total.sh TIP PRICE…
tip=$1
shift
sum=0
for price in "$@"; do
  sum=$((sum + price))
done
echo $((sum + sum * tip / 10))
