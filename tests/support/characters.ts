/** Characters for random texts. */
import fc from "fast-check";

/**
 * Any code point, half of a pair as well; controls and letters of ASCII most often. fast-check's own
 * `unit: "binary"` does the same, but takes almost a second to build its table of characters in each file.
 */
export const ANY_CHARACTER: fc.Arbitrary<string> = fc.oneof(
  fc.nat(0x7f),
  fc.nat(0xff_ff),
  fc.nat(0x10_ff_ff),
  fc.integer({ min: 0xd8_00, max: 0xdf_ff }),
).map((code) => String.fromCodePoint(code));
