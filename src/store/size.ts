/** How much room a record takes, about. */
import { estimateJsonBytes, KEY_BYTES, MARKS_BYTES } from "../sdk/json_size.ts";

/** What a frozen field of a record weighs: many runs are stored with the same plan. */
const frozen_fields = new WeakMap<object, number>();

/** Returns {@link estimateJsonBytes} of a record's value; a field that is frozen is taken to be frozen all the way down, and weighed once. */
export function weighRecord(value: Record<string, unknown>): number {
  let bytes = MARKS_BYTES;
  for (const key in value) {
    const field = value[key];
    const frozen = typeof field === "object" && field !== null && Object.isFrozen(field);
    bytes += key.length + KEY_BYTES + (frozen ? weighFrozen(field) : estimateJsonBytes(field));
  }
  return bytes;
}

function weighFrozen(field: object): number {
  let bytes = frozen_fields.get(field);
  if (bytes === undefined) frozen_fields.set(field, bytes = estimateJsonBytes(field));
  return bytes;
}
