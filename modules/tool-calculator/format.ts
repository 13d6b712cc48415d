/** Number → text, as a person would write it. */

/**
 * Returns a finite number as text: whole numbers that a double holds exactly in full, everything else rounded to 15
 * significant digits, the most that survive decimal → double → decimal (IEEE 754 binary64). So 0.1 + 0.2 is "0.3" and
 * 2^64 is "1.84467440737096e+19", which does not pretend to digits it has not.
 */
export function formatNumber(value: number): string {
  if (Number.isSafeInteger(value)) return String(value + 0); // + 0 makes -0 a plain 0
  const digits = value.toPrecision(15);
  const rounded = Number(digits);
  if (Math.abs(rounded) <= 1e15) return String(rounded);
  const [mantissa = "", exponent = ""] = digits.split("e");
  return `${Number(mantissa)}e${exponent}`;
}
