/**
 * Schemas of all canonical events: the envelope, and the `data` of each event. Events of modules have only
 * the envelope; see src/docs/events.md.
 *
 * This folder is all that remains of schemas: other data models are checked by their factories. Only the
 * event log's entries are described by zod, for `GET /v1/events/schema` and for tests. Building the schemas
 * takes some milliseconds, so nothing that `serve` loads at start may import them.
 */
import * as z from "zod";
import type { JsonObject, JsonSchema } from "../json.ts";
import { EVENT_DATA } from "./event_data.ts";

const verdict = z.looseObject({
  action: z.enum(["continue", "deny", "inject_context", "ask_user"]),
  hook_name: z.string().nullable(),
  reason: z.string().optional(),
  modified: z.boolean().optional(),
  injections: z.array(z.record(z.string(), z.unknown())).optional(),
}).meta({ description: "present when a hook did more than continue" });

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

/** Schema of the envelope, which every entry has. */
const entrySchema: z.ZodType = z.looseObject(ENVELOPE);

/** Returns the schema of an event's complete entry; for an event that is not canonical, only the envelope. */
export function entrySchemaOf(event: string): z.ZodType {
  if (!Object.hasOwn(EVENT_DATA, event)) return entrySchema;
  return z.looseObject({ ...ENVELOPE, event: z.literal(event), data: EVENT_DATA[event]! }); // own property, just checked
}

/** Returns the JSON Schema (2020-12) of each event's complete entry. */
export function entryJsonSchemas(): Record<string, JsonSchema> {
  const schemas: Record<string, JsonSchema> = {};
  for (const event of Object.keys(EVENT_DATA)) schemas[event] = toJsonSchema(entrySchemaOf(event));
  return schemas;
}

/**
 * Returns one JSON Schema (2020-12) for any entry of a log. `$defs` contains a schema for each canonical
 * event by its name, and `other` for events of modules.
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

/** Returns the JSON Schema of entries of events that are not canonical. */
export function otherSchema(): JsonSchema {
  const envelope = toJsonSchema(entrySchema);
  const properties = envelope.properties as JsonObject; // object schemas have `properties`
  return {
    ...envelope,
    properties: { ...properties, event: { type: "string", not: { enum: Object.keys(EVENT_DATA) } } },
  };
}

function toJsonSchema(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" }) as JsonSchema;
  return rest;
}
