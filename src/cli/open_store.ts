/** Where runs are kept, by the policy's `store`. */
import type { Policy } from "../policy/policy.ts";
import { MemoryStore } from "../store/memory.ts";
import type { Store } from "../store/store.ts";
import { UsageError } from "./usage_error.ts";

/** Returns the store of a policy. @throws {UsageError} for one that this program does not have. */
export function openStore({ store }: Pick<Policy, "store">): Store {
  if (store === "memory") return new MemoryStore({ now: () => Date.now() });
  // a store's URL may hold a password: only its scheme is shown
  const scheme = store.includes(":") ? `${store.slice(0, store.indexOf(":"))}:…` : store;
  throw new UsageError(
    `Cannot use store ${
      JSON.stringify(scheme)
    }: this version keeps runs in memory only: write --store memory`,
  );
}
