/**
 * Loads a bundle and all that it includes, depth first, and composes them. Executes nothing.
 *
 * A name before a colon is that of a bundle. A bundle with another one in a folder above its own is nested:
 * the upper one's name is the root of the checkout, its own name is its own folder or `namespace_root`.
 */
import { parseDocument } from "../plan/parse/parse.ts";
import { PreampError } from "../sdk/errors.ts";
import { didYouMean } from "../sdk/findings.ts";
import { isObject, type JsonObject } from "../sdk/json.ts";
import { describe } from "../sdk/value_path.ts";
import {
  type AgentSource,
  composeBundles,
  type Composed,
  type ContextSource,
  type Entry,
  LISTS,
  type Origin,
} from "./compose.ts";
import { type BundleFiles, IMPORT_LIMITS } from "./files.ts";
import { parseFrontMatter } from "./front_matter.ts";
import { type FileKind, isMarkdownName, kindOf, splitFrontMatter } from "./kinds.ts";
import { below, folderOf, parseReference, type Place, type Reference, show, urlOf } from "./places.ts";
import type { Report } from "./report.ts";

/** A file as data and text. */
export interface ParsedFile {
  readonly kind: FileKind;
  readonly data: JsonObject;
  /** The text below front matter; may be empty. */
  readonly body: string;
}

/** Options of an import. */
export interface LoadOptions {
  /** Whether files of other checkouts may be read. */
  remote: boolean;
}

/** The bundles that the CLI of Amplifier knows by name. */
const KNOWN: Readonly<Record<string, string>> = {
  "foundation": "git+https://github.com/microsoft/amplifier-foundation@main",
  "recipes": "git+https://github.com/microsoft/amplifier-bundle-recipes@main",
  "modes": "git+https://github.com/microsoft/amplifier-bundle-modes@main",
  "notify": "git+https://github.com/microsoft/amplifier-bundle-notify@main",
  "design-intelligence": "git+https://github.com/microsoft/amplifier-bundle-design-intelligence@main",
};

/** Keys of a bundle that are no part of a plan. */
const METADATA: ReadonlySet<string> = new Set([
  ...["bundle", "includes", "agents", "context", "session", ...LISTS],
  ...["default_provider", "recipes", "sub_bundles", "profile", "ui", "task", "name", "version"],
]);

/** A folder that a namespace means. */
interface Namespace {
  readonly folder: Place;
  /** The bundle of that name. */
  readonly file: Place;
  readonly own: boolean;
}

/** The bundles of one import. */
export class BundleLoader {
  readonly files: BundleFiles;
  readonly report: Report;
  readonly #options: LoadOptions;
  readonly #composed = new Map<string, Composed>();
  readonly #namespaces = new Map<string, Namespace[]>();
  #includes = 0;
  readonly #uppers = new Map<string, Promise<{ place: Place; name: string } | null>>();

  constructor(files: BundleFiles, report: Report, options: LoadOptions) {
    this.files = files;
    this.report = report;
    this.#options = options;
  }

  /** Names of bundles and the folders that they mean. */
  get namespaces(): ReadonlyMap<string, readonly Namespace[]> {
    return this.#namespaces;
  }

  /** Gives a name to a bundle that is included by it. @throws {PreampError} if there is no bundle. */
  async addNamed(name: string, place: Place): Promise<void> {
    const file = await this.bundleAt(place);
    if (file) return this.#addNamespace(name, { folder: folderOf(file), file, own: false });
    throw new PreampError("not_found", `Cannot use --name ${name}: ${show(place)} has no bundle`);
  }

  /** Resolves to a file; null if it does not exist. @throws {PreampError} for one that cannot be read. */
  async parse(place: Place, lenient = false): Promise<ParsedFile | null> {
    const text = await this.files.read(place);
    return text === null ? null : await parseIncluded(text, place, lenient);
  }

  /** Resolves to a bundle with all that it includes. */
  async load(place: Place, file: ParsedFile, chain: readonly Place[] = []): Promise<Composed> {
    const known = this.#composed.get(urlOf(place));
    if (known) return known;
    const files = [...chain, place];
    if (files.length > IMPORT_LIMITS.depth) {
      throw this.#refused(place, chain, `includes are more than ${IMPORT_LIMITS.depth} deep`);
    }
    if (this.#composed.size >= IMPORT_LIMITS.bundles) {
      throw this.#refused(place, chain, `it has more than ${IMPORT_LIMITS.bundles} bundles`);
    }
    await this.#register(place, file.data);
    const own = this.#own(place, file, chain);
    const included: Composed[] = [];
    for (const [index, reference] of includesOf(file.data).entries()) {
      const at = `includes[${index}]`;
      if (typeof reference !== "string") {
        throw this.#refused(
          place,
          chain,
          `${at} must be text or { bundle: text }: received ${describe(reference)}`,
        );
      }
      const bundle = await this.#include(reference, place, files);
      if (bundle) included.push(bundle);
    }
    const note = (message: string) => this.report.note(message);
    const composed = [...included, own].reduce((before, after) => composeBundles(before, after, note));
    this.#composed.set(urlOf(place), composed);
    return composed;
  }

  async #include(reference: string, from: Place, chain: readonly Place[]): Promise<Composed | null> {
    if (++this.#includes > IMPORT_LIMITS.includes) {
      throw this.#refused(from, chain.slice(0, -1), `there are more than ${IMPORT_LIMITS.includes} includes`);
    }
    const place = await this.#findBundle(reference, from, chain);
    if (place === null) return null;
    const circle = chain.findIndex((known) => urlOf(known) === urlOf(place));
    if (circle >= 0) {
      const names = [...chain.slice(circle), place].map(show).join(" → ");
      this.report.warn(`The include ${describe(reference)} is left out: it is a circle: ${names}`);
      return null;
    }
    const known = this.#composed.get(urlOf(place));
    if (known) return known;
    const file = await this.parse(place);
    if (file === null) return this.#missing(reference, chain, "there is no such file");
    if (file.kind !== "bundle" && file.kind !== "plan") {
      return this.#missing(reference, chain, `${show(place)} is ${article(file.kind)}, not a bundle`);
    }
    return await this.load(place, file, chain);
  }

  #missing(reference: string, chain: readonly Place[], fact: string, hint?: string): null {
    this.report.warn(
      `The include ${describe(reference)} is left out: ${fact}; it is included by ${chainText(chain)}`,
      hint,
    );
    return null;
  }

  /** Resolves to the file of an included bundle; null, with a warning, if it is missing. */
  async #findBundle(written: string, from: Place, chain: readonly Place[]): Promise<Place | null> {
    const reference = parseReference(written);
    switch (reference.kind) {
      case "place":
        this.#checkRemote(reference.place, written, chain);
        return await this.bundleAt(reference.place) ??
          this.#missing(written, chain, `${show(reference.place)} has no bundle`);
      case "path": {
        const place = below(folderOf(from), reference.path);
        if (!place) throw this.#outside(written, chain);
        return await this.bundleAt(place) ?? this.#missing(written, chain, `${show(place)} has no bundle`);
      }
      case "named":
        return await this.#namedBundle(reference, written, chain);
      case "name": {
        const own = this.#namespaces.get(reference.name)?.[0]?.file;
        if (own) return own;
        const known = Object.hasOwn(KNOWN, reference.name) ? KNOWN[reference.name] : undefined;
        return this.#missing(
          written,
          chain,
          "no bundle of this name is known",
          `name its source with --name ${reference.name}=${known ?? "git+https://host/org/repo@ref"}`,
        );
      }
      default:
        throw this.#refused(
          chain.at(-1)!,
          chain.slice(0, -1),
          `the include ${describe(written)} is refused: ${reference.fact}: ${reference.hint}`,
        );
    }
  }

  async #namedBundle(
    { namespace, path }: Extract<Reference, { kind: "named" }>,
    written: string,
    chain: readonly Place[],
  ): Promise<Place | null> {
    const namespaces = this.#namespaces.get(namespace);
    if (!namespaces) {
      return this.#missing(
        written,
        chain,
        `no bundle named ${describe(namespace)} is known`,
        unknownHint(namespace, this.#namespaces.keys()),
      );
    }
    for (const { folder } of namespaces) {
      const place = below(folder, path);
      if (!place) throw this.#outside(written, chain);
      const found = await this.bundleAt(place);
      if (found) return found;
    }
    return this.#missing(written, chain, `${show(below(namespaces[0]!.folder, path)!)} has no bundle`);
  }

  /** Resolves to the file of a bundle: the place itself, or one with an ending, or one in the folder. */
  async bundleAt(place: Place): Promise<Place | null> {
    const { root, path } = place;
    if (/\.(?:md|ya?ml|json)(?:\?.*)?$/i.test(path)) {
      return await this.files.read(place) === null ? null : place;
    }
    const names = path === "" ? [] : [".yaml", ".yml", ".md"].map((ending) => `${path}${ending}`);
    const folder = path === "" ? "" : `${path}/`;
    for (const name of [...names, `${folder}bundle.md`, `${folder}bundle.yaml`, `${folder}bundle.yml`]) {
      const found = { root, path: name };
      if (await this.files.read(found) !== null) return found;
    }
    return null;
  }

  /** Resolves to the files in a folder of each bundle, such as `modes`, where folders can be listed. */
  async filesIn(folder_name: string, ending: RegExp): Promise<Place[]> {
    const found = new Map<string, Place>();
    for (const { folder } of [...this.#namespaces.values()].flat()) {
      const inner = below(folder, folder_name)!; // a name without dots
      for (const name of await this.files.list(inner) ?? []) {
        const place = { root: inner.root, path: `${inner.path}/${name}` };
        if (ending.test(name)) found.set(urlOf(place), place);
      }
    }
    return [...found.values()];
  }

  /**
   * Resolves to the places that a name or a path of a context, an agent or a mention may mean, the first one
   * first; null, with a warning, where the name is not known.
   */
  candidates(written: string, from: Place, what: string): Place[] | null {
    const reference = parseReference(written);
    const places = (folder: Place, path: string) => {
      const place = below(folder, path);
      if (!place) throw this.#outside(written, [from]);
      return place;
    };
    switch (reference.kind) {
      case "named": {
        const known = this.#namespaces.get(reference.namespace);
        if (known) return known.map(({ folder }) => places(folder, reference.path));
        this.report.warn(
          `${what} ${describe(written)} is left out: no bundle named ${
            describe(reference.namespace)
          } is known; it is named in ${show(from)}`,
          unknownHint(reference.namespace, this.#namespaces.keys()),
        );
        return null;
      }
      case "name":
        return [places(folderOf(from), reference.name)];
      case "path":
        return [places(folderOf(from), reference.path)];
      case "place":
        this.#checkRemote(reference.place, written, [from]);
        return [reference.place];
      default:
        throw this.#refused(
          from,
          [],
          `${describe(written)} is refused: ${reference.fact}: ${reference.hint}`,
        );
    }
  }

  /** Throws for a place of another checkout, where only local files may be read. */
  #checkRemote({ root }: Place, written: string, chain: readonly Place[]): void {
    if (this.#options.remote || root.label === "") return;
    throw this.#refused(
      chain.at(-1)!,
      chain.slice(0, -1),
      `${
        describe(written)
      } is on another host, and a bundle that is run as it is has local files only: make a plan of it first: preamp plan import BUNDLE -o plan.yaml`,
    );
  }

  #outside(written: string, chain: readonly Place[]): PreampError {
    return this.#refused(
      chain.at(-1)!,
      chain.slice(0, -1),
      `${describe(written)} leads out of the bundle's folder, which is not read: copy the file into it`,
    );
  }

  #refused(place: Place, chain: readonly Place[], fact: string): PreampError {
    const included = chain.length === 0 ? "" : ` (included by ${chainText(chain)})`;
    return new PreampError("plan_invalid", `Cannot import ${show(place)}${included}: ${fact}`);
  }

  /** Records what the name of a bundle means. @throws {PreampError} if another one has the same name. */
  async #register(place: Place, { bundle }: JsonObject): Promise<void> {
    const upper = await this.#upperOf(place);
    if (upper) {
      const root = { root: place.root, path: "" };
      this.#addNamespace(upper.name, { folder: root, file: upper.place, own: false });
      this.#addNamespace(upper.name, { folder: folderOf(upper.place), file: upper.place, own: false });
    }
    const { name, namespace_root } = isObject(bundle) ? bundle : {};
    if (typeof name !== "string" || name === "") return;
    const folder = folderOf(place);
    const named = typeof namespace_root === "string" ? below(folder, namespace_root) : folder;
    if (!named) throw this.#outside(String(namespace_root), [place]);
    this.#addNamespace(name, { folder: named, file: place, own: true });
  }

  #addNamespace(name: string, added: Namespace): void {
    const known = this.#namespaces.get(name) ?? [];
    const other = known.find(({ own, file }) => own && added.own && urlOf(file) !== urlOf(added.file));
    if (other) {
      throw new PreampError(
        "plan_invalid",
        `Cannot import two bundles named ${describe(name)}: ${show(other.file)} and ${
          show(added.file)
        }: rename one of them`,
      );
    }
    if (known.length > 0 && known[0]!.folder.root.url !== added.folder.root.url) return; // the first one stays
    if (known.some(({ folder }) => urlOf(folder) === urlOf(added.folder))) {
      if (!added.own) return;
      this.#namespaces.set(name, [
        added,
        ...known.filter(({ folder }) => urlOf(folder) !== urlOf(added.folder)),
      ]);
      return;
    }
    this.#namespaces.set(name, [...known, added]);
  }

  /** Resolves to the bundle in the nearest folder above that of a file. */
  #upperOf({ root, path }: Place): Promise<{ place: Place; name: string } | null> {
    const folders = path.split("/").slice(0, -1); // of the file
    if (folders.length === 0) return Promise.resolve(null);
    const key = `${root.url} ${folders.join("/")}`;
    let upper = this.#uppers.get(key);
    if (!upper) this.#uppers.set(key, upper = this.#findUpper(root, folders));
    return upper;
  }

  async #findUpper(root: Place["root"], folders: readonly string[]) {
    for (let depth = folders.length - 1; depth >= 0; depth--) {
      for (const file of ["bundle.md", "bundle.yaml"]) {
        const place = { root, path: [...folders.slice(0, depth), file].join("/") };
        const parsed = await this.parse(place);
        const name = isObject(parsed?.data.bundle) ? parsed.data.bundle.name : undefined;
        if (typeof name === "string" && name !== "") return { place, name };
      }
    }
    return null;
  }

  /** Returns a bundle without its includes. */
  #own(place: Place, { data, body }: ParsedFile, chain: readonly Place[]): Composed {
    const origin: Origin = { file: show(place), chain: chain.map(show).toReversed() };
    const { bundle, session, spawn } = data;
    const { name, description = data.description } = isObject(bundle) ? bundle : data;
    const rest = Object.fromEntries(
      Object.entries(data).filter(([key]) => !METADATA.has(key) && key !== "description" && key !== "spawn"),
    );
    const slots = isObject(session) ? session : {};
    const entries = (section: typeof LISTS[number]) =>
      this.#entries(section, data[section], place, origin, chain);
    return {
      ...(typeof name === "string" ? { name } : {}),
      ...(typeof description === "string" && description.trim() !== ""
        ? { description: description.trim() }
        : {}),
      place,
      session: slots,
      session_from: Object.fromEntries(Object.keys(slots).map((key) => [key, [origin]])),
      modules: { providers: entries("providers"), tools: entries("tools"), hooks: entries("hooks") },
      agents: this.#agents(data.agents, place, origin),
      context: this.#context(data.context, typeof name === "string" ? name : undefined, place, origin),
      ...(body === "" ? {} : { instruction: { text: body, place, origin } }),
      rest: { ...rest, ...(spawn === undefined ? {} : { spawn }) },
    };
  }

  #entries(
    section: string,
    list: unknown,
    place: Place,
    origin: Origin,
    chain: readonly Place[],
  ): Entry[] {
    if (list === undefined || list === null) return [];
    const refuse = (fact: string) => this.#refused(place, chain, fact);
    if (!Array.isArray(list)) {
      throw refuse(`${section} must be a list of { module }: received ${describe(list)}`);
    }
    return list.map((item, index) => {
      const spec = typeof item === "string" ? { module: item } : item;
      if (!isObject(spec)) {
        throw refuse(`${section}[${index}] must be { module, config }: received ${describe(item)}`);
      }
      if (typeof (spec.module ?? spec.id ?? spec.instance_id) !== "string") {
        throw refuse(`${section}[${index}] has no module: write { module: ID }`);
      }
      return {
        spec: withAbsoluteSource(spec, place, (source) => this.#outside(source, [place])),
        from: [origin],
      };
    });
  }

  #agents(value: unknown, place: Place, origin: Origin): Map<string, AgentSource> {
    const agents = new Map<string, AgentSource>();
    if (!isObject(value)) return agents; // text or a list is no roster
    const { include = [], dirs: _, ...inline } = value;
    for (const reference of Array.isArray(include) ? include : []) {
      if (typeof reference !== "string") {
        this.report.warn(`An agent of ${origin.file} is left out: agents.include has ${describe(reference)}`);
        continue;
      }
      agents.set(reference, { reference, inline: {}, place, origin });
    }
    for (const [name, fields] of Object.entries(inline)) {
      if (!isObject(fields)) {
        this.report.warn(`The agent ${describe(name)} of ${origin.file} is left out: it must be an object`);
      } else if (fields.bundle !== undefined) {
        throw this.#refused(
          place,
          [],
          `agents.${name}.bundle is not read: name the agent's file in agents.include`,
        );
      } else agents.set(name, { ...agents.get(name), inline: fields, place, origin });
    }
    return agents;
  }

  #context(
    value: unknown,
    name: string | undefined,
    place: Place,
    origin: Origin,
  ): Map<string, ContextSource> {
    const found = new Map<string, ContextSource>();
    if (!isObject(value)) return found;
    const { include = [], ...named } = value;
    for (const reference of Array.isArray(include) ? include : []) {
      if (typeof reference !== "string") {
        this.report.warn(`A text of ${origin.file} is left out: context.include has ${describe(reference)}`);
        continue;
      }
      const plain = reference.replace(/^@/, "");
      if (plain !== reference) {
        this.report.warn(
          `context.include of ${origin.file} has ${describe(reference)}: write ${describe(plain)}`,
        );
      }
      found.set(plain.includes(":") || name === undefined ? plain : `${name}:${plain}`, {
        reference: plain,
        place,
        origin,
      });
    }
    for (const [key, path] of Object.entries(named)) {
      if (typeof path !== "string") continue;
      found.set(key.includes(":") || name === undefined ? key : `${name}:${key}`, {
        reference: path,
        place,
        origin,
      });
    }
    return found;
  }
}

/** Resolves to a file as data and text. @throws {PreampError} `plan_invalid`, `plan_limit_exceeded`. */
export async function parseFile(text: string, name: string, lenient = false): Promise<ParsedFile> {
  const label = JSON.stringify(name);
  const parts = splitFrontMatter(text);
  const is_markdown = parts !== null || isMarkdownName(name);
  if (parts) {
    const data = await parseFrontMatter(parts.head, { label, lenient });
    return { kind: kindOf(data, name, true), data, body: parts.body };
  }
  if (is_markdown) return { kind: "text", data: {}, body: text.replace(/^\uFEFF/, "").trim() };
  const { data } = await parseDocument(text, { label, hint: "start with bundle:" });
  return { kind: kindOf(data, name, false), data, body: "" };
}

/** Resolves to an included file as {@link parseFile} does: the places of its errors name it. */
async function parseIncluded(text: string, place: Place, lenient: boolean): Promise<ParsedFile> {
  const file = show(place);
  try {
    return await parseFile(text, file, lenient);
  } catch (error) {
    if (!(error instanceof PreampError)) throw error;
    const details = error.details.map((detail) => ({ ...detail, file }));
    throw new PreampError(error.code, error.message, { details, facts: error.facts, cause: error });
  }
}

function includesOf({ includes }: JsonObject): unknown[] {
  if (includes === undefined || includes === null) return [];
  if (!Array.isArray(includes)) return [includes];
  return includes.map((item) => isObject(item) ? item.bundle ?? item : item);
}

/** Returns a module's entry whose relative source is a URL: the plan is another file. */
function withAbsoluteSource(
  spec: JsonObject,
  place: Place,
  outside: (source: string) => PreampError,
): JsonObject {
  const { source } = spec;
  if (typeof source !== "string" || !/^\.\.?[/\\]/.test(source)) return spec;
  const found = below(folderOf(place), source);
  if (!found) throw outside(source);
  return { ...spec, source: urlOf(found) };
}

function unknownHint(name: string, known: Iterable<string>): string {
  const meant = didYouMean(name, known);
  const source = Object.hasOwn(KNOWN, name) ? KNOWN[name] : "git+https://host/org/repo@ref";
  const question = meant === undefined ? "" : `did you mean ${describe(meant)}? Else `;
  return `${question}include its bundle, or name its source with --name ${name}=${source}`;
}

function chainText(chain: readonly Place[]): string {
  return chain.map(show).toReversed().join(", included by ");
}

function article(kind: FileKind): string {
  return kind === "agent" ? "an agent" : `a ${kind}`;
}
