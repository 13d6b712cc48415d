/**
 * The fields of what modules return. Contracts grow by optional fields: a module may return one that this
 * program does not know, which must not go unnoticed.
 */
import { isObject } from "./json.ts";
import { isArray, Map, Object, push, Set } from "./primordials.ts";

/** What is returned → its fields, under all names that are read. */
const FIELDS = {
  "tool result": "success output error content is_error",
  "hook result": "action data reason context_injection context_injection_role context_injections ephemeral " +
    "append_to_last_tool_result approval_prompt approval_options approval_timeout approval_default " +
    "approval_pattern risk_level suppress_output user_message user_message_level user_message_source",
  "context injection": "content role ephemeral append_to_last_tool_result hook_name event",
  "response": "content content_blocks text tool_calls usage finish_reason degradation metadata model",
  "provider info": "id display_name credential_env_vars capabilities defaults config_fields",
  "model info":
    "id display_name context_window max_output_tokens capabilities defaults pricing prices metadata " +
    "cost_per_input_token cost_per_output_token",
} as const;

/** A value that modules return. */
export type Returned = keyof typeof FIELDS;

const KNOWN: Map<string, Set<string>> = new Map();
for (const [what, names] of Object.entries(FIELDS)) KNOWN.set(what, new Set(names.split(" ")));

/** Returns the names of all fields of a value that modules return. */
export function fieldsOf(what: Returned): readonly string[] {
  return FIELDS[what].split(" ");
}

/**
 * Returns the names of the fields of an object that are not known; methods are no fields. Runs in sandboxes,
 * whose module may have replaced the methods of lists.
 */
export function unknownFields(what: Returned, value: unknown): string[] {
  const unknown: string[] = [];
  if (!isObject(value)) return unknown;
  const names = Object.keys(value);
  for (let index = 0; index < names.length; index++) {
    const name = names[index]!; // below the length
    if (!KNOWN.get(what)!.has(name) && isField(value, name)) push(unknown, name);
  }
  const { context_injections: list } = what === "hook result" ? value : {};
  if (!isArray(list)) return unknown;
  for (let index = 0; index < list.length; index++) {
    const inner = unknownFields("context injection", list[index]);
    for (let at = 0; at < inner.length; at++) push(unknown, `context_injections[].${inner[at]}`);
  }
  return unknown;
}

function isField(value: { [name: string]: unknown }, name: string): boolean {
  try {
    return value[name] !== undefined && typeof value[name] !== "function";
  } catch {
    return true; // a getter that throws
  }
}
