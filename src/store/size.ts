/** How much room JSON takes, about: for ceilings that need no exact number. */

/** Returns about how many bytes of JSON a value is; cheaper than writing it. Characters count as one byte each. */
export function weigh(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 8;
  let bytes = 2;
  for (const key in value) bytes += key.length + 4 + weigh((value as Record<string, unknown>)[key]); // an object: checked above
  return bytes;
}
