/** What sub-agents use: counted by the one fold, once for each, and told among their parent's costs (behaviour.md §9.9). */
import type { Session } from "../../kernel/session/session.ts";
import { type Counters, emptyCounters } from "../../sdk/session_counters.ts";
import { sumCostUsd } from "../../sdk/money.ts";

/** What a child has used over all its turns in this run, and what its own children have. */
export interface Usage {
  readonly counters: Counters;
  readonly children: Map<string, Usage>;
}

/** Returns the usage of a parent's child; at first use its cost is contributed to the parent. */
export function usageOf(parent: Session, children: Map<string, Usage>, session_id: string): Usage {
  const known = children.get(session_id);
  if (known) return known;
  const usage: Usage = { counters: emptyCounters(), children: new Map() };
  children.set(session_id, usage);
  parent.contribute("session.cost", `delegate:${session_id}`, () => ({ cost_usd: costOf(usage) }));
  return usage;
}

function costOf({ counters, children }: Usage): string | null {
  return sumCostUsd([counters.cost_usd, ...[...children.values()].map(costOf)]);
}
