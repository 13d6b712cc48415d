/** How much room a record takes, about. */
import { estimateJsonBytes, KEY_BYTES, MARKS_BYTES } from "../sdk/json_size.ts";

/** What a frozen field of a record weighs: many runs are stored with the same plan. */
const frozen_field_bytes = new WeakMap<object, number>();

/** Returns {@link estimateJsonBytes} of a record's value; a field that is frozen is taken to be frozen all the way down, and weighed once. */
export function estimateRecordBytes(value: Record<string, unknown>): number {
  let bytes = MARKS_BYTES;
  for (const key in value) {
    const field = value[key];
    const frozen = typeof field === "object" && field !== null && Object.isFrozen(field);
    bytes += key.length + KEY_BYTES + (frozen ? estimateFrozenBytes(field) : estimateJsonBytes(field));
  }
  return bytes;
}

function estimateFrozenBytes(field: object): number {
  let bytes = frozen_field_bytes.get(field);
  if (bytes === undefined) frozen_field_bytes.set(field, bytes = estimateJsonBytes(field));
  return bytes;
}
