/**
 * Every canonical event as a schema: the envelope, and what is in `data` (behaviour.md §6; trace.md, section 2). Modules may
 * emit others; those have the envelope alone.
 */
import * as z from "zod";
import type { JsonObject, JsonSchema } from "../json.ts";
import { LIFECYCLE } from "./events/lifecycle.ts";
import { MODEL } from "./events/model.ts";
import { TURN } from "./events/turn.ts";
import { WORK } from "./events/tools.ts";

/** Event → schema of its `data`. */
export const EVENT_DATA: Readonly<Record<string, z.ZodType>> = { ...LIFECYCLE, ...TURN, ...MODEL, ...WORK };

const verdict = z.looseObject({
  action: z.enum(["continue", "deny", "inject_context", "ask_user"]),
  hook_name: z.string().nullable(),
  reason: z.string().optional(),
  modified: z.boolean().optional(),
  injections: z.array(z.record(z.string(), z.unknown())).optional(),
}).meta({ description: "there when a hook did more than continue" });

const ENVELOPE = {
  seq: z.int().min(1).meta({ description: "1, 2, 3, … without gaps" }),
  event: z.string().min(1),
  ts: z.string().meta({ format: "date-time", description: "UTC, RFC 3339" }),
  run_id: z.string(),
  session_id: z.string(),
  parent_id: z.string().optional(),
  turn_id: z.string().optional(),
  iteration: z.int().min(1).optional(),
  data: z.record(z.string(), z.unknown()),
  verdict: verdict.optional(),
};

/** The envelope of every entry. */
export const entrySchema: z.ZodType = z.looseObject(ENVELOPE);

/** Returns the schema of the whole entry of an event; of one that is not canonical, the envelope alone. */
export function entrySchemaOf(event: string): z.ZodType {
  if (!Object.hasOwn(EVENT_DATA, event)) return entrySchema;
  return z.looseObject({ ...ENVELOPE, event: z.literal(event), data: EVENT_DATA[event]! }); // its own key
}

/** Returns event → JSON Schema (2020-12) of its whole entry. */
export function entryJsonSchemas(): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const event of Object.keys(EVENT_DATA)) schemas[event] = toJsonSchema(entrySchemaOf(event));
  return schemas;
}

/**
 * Returns one JSON Schema (2020-12) for any entry of a log: `$defs` has one schema for each canonical event by its name, and
 * `other` for what modules emit.
 */
export function eventsJsonSchema(): JsonObject {
  const named = entryJsonSchemas();
  const events = Object.keys(named);
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Preamp events",
    description:
      "One entry of a run's log, as in SSE data, NDJSON, lists and json-trace. Readers ignore unknown fields and events.",
    anyOf: [...events, "other"].map((event) => ({ $ref: `#/$defs/${event}` })),
    $defs: { ...named, other: otherSchema() },
  };
}

/** Returns the JSON Schema of entries that are none of the canonical events. */
export function otherSchema(): JsonSchema {
  const envelope = toJsonSchema(entrySchema);
  const properties = envelope.properties as JsonObject; // an object schema has them
  return {
    ...envelope,
    properties: { ...properties, event: { type: "string", not: { enum: Object.keys(EVENT_DATA) } } },
  };
}

function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" }) as JsonSchema;
  return rest;
}
