/** The mount points and their other spellings (behaviour.md §1.3). */

/** A point that holds one module. */
export type SingleSlot = "orchestrator" | "context";

/** A point that holds modules by name. */
export type ManySlot = "providers" | "tools";

const SINGLES: Readonly<Record<string, SingleSlot>> = {
  orchestrator: "orchestrator",
  orchestrators: "orchestrator",
  context: "context",
  contexts: "context",
};
const MANY: Readonly<Record<string, ManySlot>> = {
  providers: "providers",
  provider: "providers",
  tools: "tools",
  tool: "tools",
};

/**
 * Returns the canonical point; `session` with the name of a single slot is that slot (R0).
 *
 * @throws {TypeError} `Unknown mount point …`.
 */
export function resolvePoint(
  point: string,
  name?: string,
): { single: SingleSlot; many?: never } | { single?: never; many: ManySlot } {
  const given = point === "session" ? name ?? "" : point;
  const single = Object.hasOwn(SINGLES, given) ? SINGLES[given] : undefined;
  if (single) return { single };
  const many = point !== "session" && Object.hasOwn(MANY, point) ? MANY[point] : undefined;
  if (many) return { many };
  const place = point === "session" ? `session with the name "${given}"` : point;
  throw new TypeError(`Unknown mount point "${place}": must be orchestrator, context, providers or tools`);
}
