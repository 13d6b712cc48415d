/** Makes plans of bundles (src/docs/amplifier.md): for `plan import`, and for a bundle used as a plan. */
import { importBundle, type ImportedPlan } from "../bundle/import.ts";
import { parseReference, type Place, show } from "../bundle/places.ts";
import { integrityOf } from "../loader/integrity.ts";
import { DOCUMENT_LIMITS, exceedsBytes } from "../plan/parse/document_limits.ts";
import { type Lock, lockedName } from "../plan/lock.ts";
import { escapedPath } from "../plan/source/source.ts";
import type { WarningDetail } from "../plan/check/findings.ts";
import type { Policy } from "../policy/policy.ts";
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import type { ConnectionOptions } from "../sdk/http/pinned_connections.ts";
import { BundleReader } from "./bundle_reader.ts";
import type { ModuleTable } from "./module_table.ts";
import type { BundleInput, ImportedBundle } from "./types.ts";

interface ImportDeps {
  readonly policy: Policy;
  readonly modules: ModuleTable;
  /** How hosts are reached; for tests. */
  readonly connection?: ConnectionOptions;
}

/**
 * Resolves to the plan of a bundle, wherever it is, and the lock of its fetched files.
 *
 * @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`, `not_found`, and those of fetching a module.
 */
export async function importPlan(
  input: BundleInput,
  { policy, modules, connection }: ImportDeps,
): Promise<ImportedBundle> {
  const place = await placeOf(input.source);
  const names = new Map<string, Place>();
  for (const [name, source] of input.names) names.set(name, await placeOf(source));
  const { lock, base_url } = input;
  await using reader = new BundleReader({
    policy,
    entry: place.root.url,
    lock: input.update ? undefined : lock,
    frozen: policy.modules.frozen,
    base_url,
    ...connection,
  });
  const imported = await importBundle(place, {
    reader,
    ...tableOf(modules),
    names,
    remote: true,
    pathOf: (url) => pathOf(url, base_url),
  });
  if (imported === null) {
    throw new PreampError(
      "plan_invalid",
      "Cannot import it: it is a plan already, and is used as it is: preamp run -p FILE",
    );
  }
  return { ...imported, fetched: reader.fetched.length, lock: lockOfFetched(input, reader) };
}

/**
 * Returns a lock of what was fetched. @throws {PreampError} `module_integrity_mismatch` if other files were
 * fetched than the lock has.
 */
function lockOfFetched(
  { source, lock, base_url, update }: BundleInput,
  { fetched }: BundleReader,
): Lock | null {
  const [first] = fetched;
  if (first === undefined) return null;
  const integrity = integrityOf(first.url, fetched);
  const known = lock && Object.hasOwn(lock.modules, source) ? lock.modules[source]?.integrity : undefined;
  if (known !== undefined && known !== integrity && !update) {
    throw new PreampError(
      "module_integrity_mismatch",
      `Cannot import ${source}: it has other files than the lock: expected ${known}: received ${integrity}; if you accept the change, add --update`,
    );
  }
  return {
    version: 1,
    modules: { [source]: { url: first.url, integrity } },
    files: Object.fromEntries(
      fetched.map(({ url, sha256, bytes }) => [lockedName(url, base_url), { sha256, bytes }]),
    ),
    servers: {},
    texts: {},
  };
}

/**
 * Resolves to the plan of a text that is a bundle; null if it is a plan.
 *
 * @param base_url URL of its file; absent: it may name no file.
 * @throws {PreampError} as {@link importPlan}.
 */
export async function planOfBundle(
  text: string,
  base_url: string | undefined,
  { policy, modules }: ImportDeps,
): Promise<{ plan: JsonObject; warnings: WarningDetail[] } | null> {
  const local = base_url?.startsWith("file:") ? base_url : undefined;
  const place = local === undefined ? NOWHERE : await placeOf(local);
  await using reader = new BundleReader({ policy, entry: place.root.url, frozen: false });
  const imported = await importBundle(place, {
    reader: local === undefined
      ? { read: () => Promise.resolve(null), list: () => Promise.resolve(null) }
      : reader,
    ...tableOf(modules),
    text,
    pathOf: (url) => pathOf(url, local),
  });
  if (imported === null) return null;
  const { max_bytes } = DOCUMENT_LIMITS;
  if (exceedsBytes(JSON.stringify(imported.plan), max_bytes)) {
    throw new PreampError(
      "plan_limit_exceeded",
      `Cannot use ${
        show(place)
      } as a plan: with its texts it has more than ${max_bytes} bytes: preamp plan import -o plan.yaml writes them beside a plan`,
    );
  }
  const { instructions: _, ...plan } = imported.plan; // only an operator's plan may have them
  return { plan: local === undefined ? plan : imported.plan, warnings: warningsOf(imported) };
}

/** The place of a text without a file. */
const NOWHERE: Place = { root: { url: "file:///nowhere/", label: "" }, path: "the plan" };

function warningsOf({ report }: ImportedPlan): WarningDetail[] {
  return report.filter(({ level }) => level === "warning").map(({ message, hint }) => ({
    code: "bundle",
    path: "",
    message,
    ...(hint === undefined ? {} : { hint }),
  }));
}

function tableOf(modules: ModuleTable) {
  return {
    builtins: modules.ids,
    async keysOf(module: string): Promise<ReadonlySet<string> | null> {
      const { config_schema } = await modules.listing(module);
      const { properties, additionalProperties } = isObject(config_schema) ? config_schema : {};
      return isObject(properties) && !isObject(additionalProperties)
        ? new Set(Object.keys(properties))
        : null;
    },
  };
}

/** Returns a local file as a plan names it: relative to the plan's file, if there is one. */
function pathOf(url: string, base_url: string | undefined): string {
  const path = decodeURIComponent(base_url === undefined ? new URL(url).pathname : lockedName(url, base_url));
  return path.replace(/(?<=.)\/$/, "").replaceAll("${", () => "$${");
}

/** Resolves to the place of a `file:` URL, a git source or the URL of a file. */
async function placeOf(source: string): Promise<Place> {
  if (source.startsWith("file:")) return await localPlace(new URL(source));
  const reference = parseReference(source);
  if (reference.kind === "place") return reference.place;
  const { fact, hint } = reference.kind === "refused" ? reference : {
    fact: "it is no source",
    hint: "name a file, a folder, or git+https://host/org/repo@ref#subdirectory=path",
  };
  throw new PreampError("request_invalid", `Cannot import ${JSON.stringify(source)}: ${fact}: ${hint}`);
}

/** Folders above a bundle that are looked at for the bundle that it belongs to. */
const MAX_ABOVE = 6;

/** Resolves to a local file or folder; its root is the folder of the nearest bundle above, else its own. */
async function localPlace(named: URL): Promise<Place> {
  // the person has named it: only what it names must be inside of its folder
  const real = await Deno.realPath(named).catch(() => null);
  const url = real === null ? named : new URL(`file://${escapedPath(real)}`);
  const is_folder = await Deno.stat(url).then(({ isDirectory }) => isDirectory, () => false);
  const folder = is_folder ? new URL(`${url.href.replace(/\/$/, "")}/`) : new URL(".", url);
  const target = is_folder ? folder : url;
  let root = folder;
  for (let above = folder, level = 0; level < MAX_ABOVE; level++) {
    if (await exists(new URL(".git", above))) break;
    const parent = new URL("..", above);
    if (parent.href === above.href) break;
    above = parent;
    if (await exists(new URL("bundle.md", above)) || await exists(new URL("bundle.yaml", above))) {
      root = above;
      break;
    }
  }
  const path = decodeURIComponent(target.pathname.slice(root.pathname.length)).replace(/\/$/, "");
  return { root: { url: root.href, label: "" }, path };
}

async function exists(url: URL): Promise<boolean> {
  return await Deno.stat(url).then(() => true, () => false);
}
