/** Implements `plan vendor`: a plan's modules as bundles for files beside it. Executes nothing. */
import { createHash } from "node:crypto";
import { fetchPlan } from "./explain.ts";
import type { LazyLoader } from "./lazy_loader_and_sandbox.ts";
import type { ModuleTable } from "./module_table.ts";
import type { Plans } from "./plan_service.ts";
import type { LockedInput, Vendored, VendoredModule, VendorFiles } from "./types.ts";
import { publishable } from "../loader/bundler/publishable_bundle.ts";
import { integrityOf } from "../loader/integrity.ts";
import type { ModuleBundle } from "../loader/types.ts";
import { systemFileUrl } from "../plan/check/check.ts";
import { parseSource } from "../plan/source/source.ts";
import { vendoredPlan } from "../plan/vendor.ts";
import type { Caller } from "../runs/types.ts";
import type { Source } from "../sdk/plan.ts";

/** Folder of the bundles beside a vendored plan. */
const MODULES = "modules";
/** Folder of the texts that the plan names by `system: {file}`. */
const FILES = "files";

/**
 * Resolves to the plan with its modules as files beside it.
 *
 * @throws {PreampError} as `explain`.
 */
export async function vendorPlan(
  input: LockedInput,
  caller: Caller,
  deps: { plans: Plans; loading: LazyLoader; modules: ModuleTable },
  { base_url, target_url, inline = false }: VendorFiles,
): Promise<Vendored> {
  const { plan: { compiled, context }, modules: fetched } = await fetchPlan(input, caller, deps, base_url);
  const names = new FileNames();
  const modules = new Map<string, VendoredModule>();
  for (const { spec: { module, source }, bundle } of fetched) {
    const key = keyOf(source);
    if (!modules.has(key)) modules.set(key, vendoredModule(module, bundle, names, target_url));
  }
  const files = new Map<string, string>();
  const options = { base_url, esm_host: context.policy.modules.esm_host, builtins: deps.modules.ids };
  const plan = vendoredPlan(compiled.written, {
    base_url,
    target_url,
    inline,
    module(source) {
      const parsed = parseSource(source, options);
      const vendored = "source" in parsed ? modules.get(keyOf(parsed.source)) : undefined;
      return vendored && { source: `./${vendored.path}`, integrity: vendored.integrity };
    },
    file(file) {
      const url = systemFileUrl(file, base_url);
      const path = files.get(url) ??
        `${FILES}/${names.unique(FILES, decodeURIComponent(url.replace(/^.*\//, "")))}`;
      files.set(url, path);
      return `./${path}`;
    },
  });
  return { plan, modules: [...modules.values()], files: [...files].map(([url, path]) => ({ path, url })) };
}

function vendoredModule(
  module: string,
  bundle: ModuleBundle,
  names: FileNames,
  target_url: string,
): VendoredModule {
  const path = `${MODULES}/${names.unique(MODULES, `${module}.js`)}`;
  const code = publishable(bundle);
  const url = new URL(path, target_url).href;
  const bytes = new TextEncoder().encode(code);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const integrity = integrityOf(url, [{ url, sha256, bytes: bytes.length }]);
  return { module, path, url: bundle.url, integrity, code, imports_refused: bundle.imports_refused };
}

/** Returns a key that sources of the same code share. */
function keyOf(source: Source): string {
  return source.kind === "url"
    ? JSON.stringify([source.url, source.folder ?? false])
    : JSON.stringify(source);
}

/** Chooses names of files that differ on every file system, also where case does not matter. */
class FileNames {
  readonly #taken = new Set<string>();

  /** Returns a name like `wanted` that no other file of the folder has. */
  unique(folder: string, wanted: string): string {
    const name = wanted.replaceAll(/[^\w.@-]/g, "-").replace(/^\.+/, "");
    const [, stem = name, extension = ""] = /^(.*?)(\.\w+)?$/.exec(name) ?? [];
    for (let count = 1;; count++) {
      const candidate = `${stem}${count === 1 ? "" : `-${count}`}${extension}`;
      const key = `${folder}/${candidate.toLowerCase()}`;
      if (this.#taken.has(key)) continue;
      this.#taken.add(key);
      return candidate;
    }
  }
}
