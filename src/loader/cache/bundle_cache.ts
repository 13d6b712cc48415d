/**
 * Bundles that were made, in memory: bounded by their length, the least recently used go first. Keys hold whose they are, so
 * that nobody meets another's.
 */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../sdk/json.ts";
import type { GraphPrefetcher } from "../fetch/prefetch.ts";
import type { LoadContext, ModuleBundle } from "../types.ts";

/** A bounded memory of bundles. */
export class BundleCache {
  readonly #max_bytes: number;
  readonly #bundles = new Map<string, ModuleBundle>(); // in order of use
  #bytes = 0;

  /** `max_bytes`: UTF-16 code units of code, near enough. */
  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes;
  }

  /** Returns the bundle of a key. */
  get(key: string): ModuleBundle | undefined {
    const bundle = this.#bundles.get(key);
    if (bundle) {
      this.#bundles.delete(key);
      this.#bundles.set(key, bundle);
    }
    return bundle;
  }

  /** Keeps a bundle, if it is not larger than all there is room for. */
  set(key: string, bundle: ModuleBundle): void {
    const known = this.#bundles.get(key);
    if (known) this.#bytes -= known.code.length;
    this.#bundles.delete(key);
    if (bundle.code.length > this.#max_bytes) return;
    this.#bundles.set(key, bundle);
    this.#bytes += bundle.code.length;
    for (const [oldest, { code }] of this.#bundles) {
      if (this.#bytes <= this.#max_bytes) break;
      this.#bundles.delete(oldest);
      this.#bytes -= code.length;
    }
  }
}

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
    known.set(who, scope = hashHex({ namespace, origin, rules }));
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
  return hashHex({ scope, requested, entry, files: hashes, redirects: [...redirects].sort() });
}

/** Returns (hex) the name of what a URL with a digest stands for. */
export function pinKey(scope: string, url: string, integrity: string): string {
  return hashHex({ scope, url, integrity });
}

function hashHex(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}
