/** Loads a profile, the older form of a bundle: one parent, agents by folder, settings of the terminal. */
import { PreampError } from "../sdk/errors.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import { composeBundles, type Composed } from "./compose.ts";
import { IMPORT_LIMITS } from "./files.ts";
import type { BundleLoader, ParsedFile } from "./load.ts";
import { below, folderOf, parseReference, type Place, show, urlOf } from "./places.ts";

/** Resolves to a profile over those that it extends. Their texts are not inherited. */
export async function loadProfile(
  place: Place,
  file: ParsedFile,
  loader: BundleLoader,
  chain: readonly Place[] = [],
): Promise<Composed> {
  const { profile } = file.data;
  const { extends: parent, name } = isObject(profile) ? profile : {};
  if (chain.length >= IMPORT_LIMITS.depth) {
    throw refused(place, `profiles extend each other more than ${IMPORT_LIMITS.depth} times`);
  }
  const own = await loader.load(place, await asBundle(file, place, loader));
  if (parent === undefined || parent === null) return own;
  if (typeof parent !== "string") throw refused(place, `extends must be text: received ${describe(parent)}`);
  const found = await findParent(parent, place, loader);
  if (found === null) throw refused(place, `it extends ${describe(parent)}, and there is no such file`);
  const files = [...chain, place];
  const circle = files.findIndex((known) => urlOf(known) === urlOf(found));
  if (circle >= 0) {
    throw refused(
      place,
      `profiles extend each other: ${[...files.slice(circle), found].map(show).join(" → ")}`,
    );
  }
  const parsed = await loader.parse(found);
  if (parsed === null) throw refused(place, `it extends ${describe(parent)}, and there is no such file`);
  if (parsed.kind !== "profile") throw refused(place, `${show(found)}, which it extends, is not a profile`);
  const { instruction: _, ...base } = await loadProfile(found, parsed, loader, files);
  loader.report.note(`${String(name ?? show(place))} extends ${show(found)}`);
  return composeBundles(base, own, (message) => loader.report.note(message));
}

async function findParent(parent: string, place: Place, loader: BundleLoader): Promise<Place | null> {
  const reference = parseReference(parent);
  if (reference.kind === "name") {
    const beside = below(folderOf(place), parent);
    return beside && await loader.bundleAt(beside);
  }
  for (const candidate of loader.candidates(parent, place, "The profile") ?? []) {
    const found = await loader.bundleAt(candidate);
    if (found) return found;
  }
  return null;
}

/** Keys under `session` that belong to the context's config. */
const CONTEXT_KEYS = ["max_tokens", "compact_threshold", "auto_compact"] as const;

/** Resolves to a profile with the keys of a bundle. */
async function asBundle({ data, body }: ParsedFile, place: Place, loader: BundleLoader): Promise<ParsedFile> {
  const { profile, session, agents, task, ...rest } = data;
  const { name, version, description } = isObject(profile) ? profile : {};
  if (isObject(task) && task.max_recursion_depth !== undefined) {
    loader.report.warn(
      `task.max_recursion_depth of ${show(place)} is left out`,
      "the setting limits.max_depth bounds how deep agents start agents",
    );
  }
  return {
    kind: "bundle",
    body,
    data: {
      ...rest,
      bundle: { name: name ?? show(place), version, description },
      ...(isObject(session) ? { session: withContextKeys(session) } : {}),
      ...(isObject(agents) ? { agents: await withFolders(agents, place, loader) } : {}),
    },
  };
}

function withContextKeys(session: JsonObject): JsonObject {
  const { context, ...rest } = session;
  const moved = CONTEXT_KEYS.filter((key) => rest[key] !== undefined).map((key) => [key, rest[key]] as const);
  for (const key of CONTEXT_KEYS) delete rest[key];
  if (moved.length === 0) return session;
  const spec: JsonObject = isObject(context) ? context : { module: context ?? "context-simple" };
  const config = isObject(spec.config) ? spec.config : {};
  return { ...rest, context: { ...spec, config: { ...Object.fromEntries(moved), ...config } } };
}

/** Resolves to agents by their files, and those that are written in the profile. */
async function withFolders(
  { dirs, include, inline }: JsonObject,
  place: Place,
  loader: BundleLoader,
): Promise<JsonObject> {
  const found: string[] = [];
  for (const dir of Array.isArray(dirs) ? dirs : []) {
    const folder = typeof dir === "string" ? below(folderOf(place), dir) : null;
    if (!folder) throw refused(place, `agents.dirs has ${describe(dir)}, which leads out of its folder`);
    for (const file of await loader.files.list(folder) ?? []) {
      const name = /^(.+)\.md$/i.exec(file)?.[1];
      if (name === undefined || Array.isArray(include) && !include.includes(name)) continue;
      found.push(`./${String(dir).replace(/^(\.\/)+|\/+$/g, "")}/${name}`);
    }
  }
  const names = found.length > 0 || !Array.isArray(include) ? found : include;
  return { include: names, ...isObject(inline) ? inline : {} };
}

function refused(place: Place, fact: string): PreampError {
  return new PreampError("plan_invalid", `Cannot import ${show(place)}: ${fact}`);
}
