/** Names of what is remembered. Whoever asks under another policy or name space meets another name. Pure. */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../sdk/json.ts";
import type { GraphPrefetcher } from "../fetch/prefetch.ts";
import type { LoadContext } from "../types.ts";

const scopes = new WeakMap<object, Map<string, string>>();

/** Returns (hex) whose cache it is: name space, origin of the plan, and all of the policy that decides what is loaded. */
export function scopeOf({ namespace, origin, policy }: LoadContext): string {
  const who = `${origin} ${namespace}`;
  let known = scopes.get(policy);
  if (!known) scopes.set(policy, known = new Map());
  let scope = known.get(who);
  if (scope === undefined) {
    const { allow, private_hosts, esm_host } = policy.modules;
    const { max_module_bytes, max_graph_bytes, max_graph_files } = policy.limits;
    const rules = { allow, private_hosts, esm_host, max_module_bytes, max_graph_bytes, max_graph_files };
    known.set(who, scope = hex({ namespace, origin, rules }));
  }
  return scope;
}

/** Returns (hex) the name of a bundle: all that its text depends on. */
export function bundleKey(
  scope: string,
  requested: string,
  entry: string,
  { files, redirects }: Pick<GraphPrefetcher, "files" | "redirects">,
): string {
  const hashes = [...files.values()].map(({ url, sha256 }) => [url, sha256]).sort();
  return hex({ scope, requested, entry, files: hashes, redirects: [...redirects].sort() });
}

/** Returns (hex) the name of what a URL with a digest stands for. */
export function pinKey(scope: string, url: string, integrity: string): string {
  return hex({ scope, url, integrity });
}

function hex(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}
