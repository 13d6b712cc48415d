/** Where runs are kept, by the policy's `store`. */
import type { Policy } from "../policy/policy.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import { checkStore } from "./store_check.ts";

/** Returns the store of a policy. @throws {UsageError} for one that this program does not have. */
export function openStore(policy: Pick<Policy, "store">): Store {
  checkStore(policy);
  return new MemoryStore({ now: () => Date.now() });
}
