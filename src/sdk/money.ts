/** Money as decimal strings, never as floats. Calculates in units of 10⁻¹⁸ dollars. */

const SCALE = 18;
const DOLLAR = 10n ** BigInt(SCALE);
const DECIMAL = /^(\d{1,15})(?:\.(\d{1,18}))?$/;

/** Returns true for a non-negative decimal string such as `"0.50"`. */
export function isDecimal(value: unknown): value is string {
  return typeof value === "string" && DECIMAL.test(value);
}

/**
 * Returns a decimal string in units of 10⁻¹⁸.
 *
 * @throws {RangeError} when the text is not a non-negative decimal.
 */
export function parseDecimal(text: string): bigint {
  const match = DECIMAL.exec(text);
  if (!match) {
    throw new RangeError(
      `Cannot read money: must be a decimal string such as "0.50": received ${JSON.stringify(text)}`,
    );
  }
  const [, whole = "0", fraction] = match;
  return BigInt(whole) * DOLLAR + (fraction ? BigInt(fraction.padEnd(SCALE, "0")) : 0n);
}

/** Returns units of 10⁻¹⁸ as a decimal string without trailing zeros. */
export function formatDecimal(units: bigint): string {
  const digits = units.toString().padStart(SCALE + 1, "0");
  const fraction = digits.slice(-SCALE).replace(/0+$/, "");
  const whole = digits.slice(0, -SCALE);
  return fraction ? `${whole}.${fraction}` : whole;
}

/** Returns a negative number, 0 or a positive number as `a` is below, equal to or above `b`. */
export function compareDecimal(a: string, b: string): number {
  const difference = parseDecimal(a) - parseDecimal(b);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Returns the smaller of two decimal strings. */
export function smallerDecimal(a: string, b: string): string {
  return compareDecimal(a, b) <= 0 ? a : b;
}

/**
 * Returns the sum of costs without null and malformed ones. A sum of no costs is null, because an unknown
 * cost is not zero.
 */
export function sumCostUsd(costs: Iterable<string | null | undefined>): string | null {
  let total: bigint | null = null;
  for (const cost of costs) if (isDecimal(cost)) total = (total ?? 0n) + parseDecimal(cost);
  return total === null ? null : formatDecimal(total);
}
