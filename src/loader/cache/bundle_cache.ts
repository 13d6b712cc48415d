/** Memory cache of bundles: limited in size, least recently used first out. Keys contain the namespace and the policy. */
import { createHash } from "node:crypto";
import { canonicalJson } from "../../sdk/json.ts";
import type { GraphPrefetcher } from "../fetch/prefetch.ts";
import type { LoadContext, ModuleBundle } from "../types.ts";

/** Memory cache of bundles. */
export class BundleCache {
  readonly #max_bytes: number;
  readonly #bundles = new Map<string, ModuleBundle>(); // in order of use
  #bytes = 0;

  /** `max_bytes` counts UTF-16 code units of code as bytes. */
  constructor(max_bytes: number) {
    this.#max_bytes = max_bytes;
  }

  /** Returns the bundle of a key and marks it as used. */
  get(key: string): ModuleBundle | undefined {
    const bundle = this.#bundles.get(key);
    if (bundle) {
      this.#bundles.delete(key);
      this.#bundles.set(key, bundle);
    }
    return bundle;
  }

  /** Stores a bundle unless it is larger than the cache. */
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

/** Returns the hash of everything that separates caches: namespace, origin of the plan, and the policy's rules for loading. */
export function scopeOf({ namespace, origin, policy }: LoadContext): string {
  const owner = `${origin} ${namespace}`;
  let known = scopes.get(policy);
  if (!known) scopes.set(policy, known = new Map());
  let scope = known.get(owner);
  if (scope === undefined) {
    const { allow, private_hosts, esm_host } = policy.modules;
    const { max_module_bytes, max_graph_bytes, max_graph_files } = policy.limits;
    const rules = { allow, private_hosts, esm_host, max_module_bytes, max_graph_bytes, max_graph_files };
    known.set(owner, scope = hashHex({ namespace, origin, rules }));
  }
  return scope;
}

/** Returns the key of a bundle: the hash of all its inputs. */
export function bundleKey(
  scope: string,
  requested: string,
  entry: string,
  { files, redirects }: Pick<GraphPrefetcher, "files" | "redirects">,
): string {
  const hashes = [...files.values()].map(({ url, sha256 }) => [url, sha256]).sort();
  return hashHex({ scope, requested, entry, files: hashes, redirects: [...redirects].sort() });
}

/** Returns the key of a pin: a URL with a digest. */
export function pinKey(scope: string, url: string, integrity: string): string {
  return hashHex({ scope, url, integrity });
}

function hashHex(value: unknown): string {
  return createHash("sha256").update(canonicalJson(value)).digest("hex");
}
