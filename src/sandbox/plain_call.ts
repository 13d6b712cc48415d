/** A tool call as data, both ways across the wire. Pure. */
import { type JsonObject, toPlainObject } from "../sdk/json.ts";
import type { ToolCall } from "../sdk/tools.ts";

/** Returns the call with the text of arguments that could not be read, which is no enumerable field. */
export function plainCall(call: ToolCall): JsonObject {
  const { invalid_arguments } = call;
  return { ...toPlainObject(call), ...(invalid_arguments === undefined ? {} : { invalid_arguments }) };
}
