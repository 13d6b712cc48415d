/** How much room JSON takes, about: for ceilings that need no exact number. */

/** Bytes of a number, a boolean or null with what stands around it; our choice. */
const SCALAR_BYTES = 8;

/**
 * Returns about how many bytes of JSON a value is; cheaper than writing it. Characters count as one byte each.
 *
 * Lists have a loop of their own, and text and scalars are weighed in place: one `for … in` over everything takes 12 times as
 * long (0.9 µs an entry of a log, which is weighed several times), because it makes a text of every index.
 */
export function weigh(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return SCALAR_BYTES;
  return Array.isArray(value) ? weighList(value) : weighFields(value as Record<string, unknown>); // an object: just looked
}

/** What a frozen field of a record weighs: many runs are stored with the same plan. */
const frozen_fields = new WeakMap<object, number>();

/** Returns {@link weigh} of a record's value; a field that is frozen is taken to be frozen all the way down, and weighed once. */
export function weighRecord(value: Record<string, unknown>): number {
  let bytes = 2;
  for (const key in value) {
    const field = value[key];
    const frozen = typeof field === "object" && field !== null && Object.isFrozen(field);
    bytes += key.length + 4 + (frozen ? weighFrozen(field) : weigh(field));
  }
  return bytes;
}

function weighFrozen(field: object): number {
  let bytes = frozen_fields.get(field);
  if (bytes === undefined) frozen_fields.set(field, bytes = weigh(field));
  return bytes;
}

function weighList(items: readonly unknown[]): number {
  let bytes = 2;
  for (let index = 0; index < items.length; index++) { // an iterator here was 5 KB for each run
    const item = items[index];
    bytes += 1 + (typeof item === "string" ? item.length + 2 : weigh(item));
  }
  return bytes;
}

function weighFields(fields: Record<string, unknown>): number {
  let bytes = 2;
  for (const key in fields) {
    const value = fields[key];
    bytes += key.length + 4 + (typeof value === "string" ? value.length + 2 : weigh(value));
  }
  return bytes;
}
