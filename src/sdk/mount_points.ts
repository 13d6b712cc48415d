/** The mount points and their alternative spellings. */

/** A mount point for one module. */
export type SingleSlot = "orchestrator" | "context";

/** A mount point for modules by name. */
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
 * Returns the canonical mount point; `session` with the name of a single slot means that slot.
 *
 * @throws {TypeError} `Unknown mount point …`.
 */
export function resolvePoint(
  point: string,
  name?: string,
): { single: SingleSlot; many?: never } | { single?: never; many: ManySlot } {
  const slot = point === "session" ? name ?? "" : point;
  const single = Object.hasOwn(SINGLES, slot) ? SINGLES[slot] : undefined;
  if (single) return { single };
  const many = point !== "session" && Object.hasOwn(MANY, point) ? MANY[point] : undefined;
  if (many) return { many };
  const place = point === "session" ? `session with the name "${slot}"` : point;
  throw new TypeError(`Unknown mount point "${place}": must be orchestrator, context, providers or tools`);
}
