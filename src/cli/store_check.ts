/** Which stores this program has, without loading one. */
import type { Policy } from "../policy/policy.ts";
import { UsageError } from "./usage_error.ts";

/** Checks that there is the store of a policy. @throws {UsageError} for one that this program does not have. */
export function checkStore({ store }: Pick<Policy, "store">): void {
  if (store === "memory") return;
  // a store's URL may hold a password: only its scheme is shown
  const scheme = store.includes(":") ? `${store.slice(0, store.indexOf(":"))}:…` : store;
  throw new UsageError(
    `Cannot use store ${
      JSON.stringify(scheme)
    }: this version keeps runs in memory only: write --store memory`,
  );
}
