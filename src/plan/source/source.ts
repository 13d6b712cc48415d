/**
 * Resolves a module's source in every form (src/docs/plan.md#sources) to one URL. Pure: no network, no
 * disk. The policy decides whether the URL may be loaded.
 */
import { gitSourceOfPage, parseGitDict, parseGitUri } from "./source_git.ts";
import { describe } from "../../sdk/value_path.ts";
import { isObject } from "../../sdk/json.ts";
import type { Source } from "../../sdk/plan.ts";
import { hasControl, hasSpace } from "../../text/escape.ts";

/** Options of `parseSource`. */
export interface SourceOptions {
  /** URL of the plan file; absent for plans that were not read from one. */
  base_url?: string;
  /**
   * URL of the server that provides npm and JSR packages as ES modules, or `none`. Default {@link
   * DEFAULT_ESM_HOST}.
   */
  esm_host?: string;
  /** Ids of the built-in modules. Amplifier's git repository of one of them means the built-in module. */
  builtins?: ReadonlySet<string>;
}

/** A parsed source, or the problem with it. */
export type SourceResult = { source: Source } | { problem: string; hint: string };

/** Default server of `npm:` and `jsr:` packages. */
export const DEFAULT_ESM_HOST = "https://esm.sh";
/** Value of `esm_host` that disables `npm:` and `jsr:`. */
export const NO_ESM_HOST = "none";

/** The supported forms, for messages. */
export const SOURCE_FORMS =
  "use the URL of an ES module (https://host/mod.ts), http://127.0.0.1:PORT/…, file:///…, ./relative/path, data:…, " +
  "npm:name@1, jsr:@scope/name@1, or git+https://host/org/repo@ref#subdirectory=folder on GitHub, GitLab, Bitbucket, " +
  "Codeberg or Gitea; leave source out for a built-in module";

/** Parses a spec's `source`: a string, or a dictionary with `type`. */
export function parseSource(value: unknown, options: SourceOptions = {}): SourceResult {
  if (value === undefined) return { source: { kind: "builtin" } };
  if (typeof value === "string") return parseText(value.trim(), value, options);
  if (isObject(value)) return parseDict(value, options);
  return refuse(`must be text or an object with "type": received ${describe(value)}`);
}

function parseText(text: string, original: string, options: SourceOptions): SourceResult {
  if (text === "") return refuse("it is empty");
  const mayHoldSpaces = isPath(text) || text.startsWith("data:");
  if (mayHoldSpaces ? hasControl(text) : hasSpace(text)) {
    return refuse(`it contains a space or control character: received ${describe(text)}`);
  }
  if (text.includes("$(")) {
    return refuse(
      `"$(" is not expanded: received ${describe(text)}`,
      "write ./path, relative to the plan file",
    );
  }
  if (isPath(text)) return parsePath(text, original, options.base_url);
  const scheme = schemeOf(text);
  switch (scheme) {
    case "https": {
      const git = gitSourceOfPage(text);
      if (git === undefined) return parseUrl(text, original, scheme);
      return refuse(`it is a page, not a module: received ${describe(text)}`, `write ${describe(git)}`);
    }
    case "http":
    case "file":
      return parseUrl(text, original, scheme);
    case "data":
      return URL.canParse(text)
        ? { source: { kind: "url", url: text, original } }
        : refuse("it is not a valid data: URL");
    case "npm":
    case "jsr": {
      const found = registryUrl(text, options.esm_host);
      return "problem" in found ? found : { source: { kind: "url", url: found.url, original, via: scheme } };
    }
    case "git+https":
      return orForms(parseGitUri(text, original));
    case "git+ssh":
    case "git+http":
    case "git+file":
    case "git":
    case "ssh":
      return refuse(`${scheme}: is not supported: received ${describe(text)}`);
    case undefined: {
      const address = addressHint(text);
      if (address !== undefined) {
        return refuse(`a URL starts with https://: received ${describe(text)}`, address);
      }
      if (text.startsWith("~")) {
        return refuse(`"~" is not expanded: received ${describe(text)}`, "write the absolute path");
      }
      if (looksLikePath(text)) {
        return refuse(
          `a path starts with "./" or "/": received ${describe(text)}`,
          `did you mean ${describe(`./${text}`)}?`,
        );
      }
      return refuse(`packages of other languages are not supported: received ${describe(text)}`);
    }
    default:
      return refuse(
        scheme.startsWith("zip+")
          ? `archives are not supported: received ${describe(text)}`
          : `${scheme}: is not a supported form: received ${describe(text)}`,
      );
  }
}

function parseDict(value: Record<string, unknown>, options: SourceOptions): SourceResult {
  switch (value.type) {
    case "git":
      return orForms(parseGitDict(value));
    case "file": {
      if (typeof value.path !== "string" || value.path === "") {
        return refuse('a source of type "file" needs "path"');
      }
      const path = isPath(value.path) || schemeOf(value.path) === "file" ? value.path : `./${value.path}`;
      return parseText(path, value.path, options);
    }
    case "url":
    case "http":
    case "https":
      if (typeof value.url !== "string") return refuse(`a source of type "${value.type}" needs "url"`);
      return parseText(value.url, value.url, options);
    case "package":
      return refuse(`packages of other languages are not supported: received ${describe(value.name)}`);
    default:
      return refuse(`"type" of a source must be git, file or url: received ${describe(value.type)}`);
  }
}

function parseUrl(text: string, original: string, scheme: string): SourceResult {
  if (!text.slice(scheme.length + 1).startsWith("//") || !URL.canParse(text)) {
    return refuse(`it is not a valid URL: received ${describe(text)}`);
  }
  const url = new URL(text);
  if (url.username || url.password) {
    return refuse(
      "a URL must not contain a user name or password",
      "pass credentials to the module through config and ${VAR}",
    );
  }
  if (scheme === "file" && url.host !== "") {
    return refuse(`a file: URL must not have a host: received ${describe(text)}`);
  }
  url.hash = "";
  const path = scheme === "file" || url.pathname.endsWith("/") ? fileOrEntry(url.pathname) : url.pathname;
  const folder = path !== url.pathname && url.search === ""; // a query may be a signature of this file
  url.pathname = path;
  return { source: { kind: "url", url: url.href, original, ...(folder ? FOLDER : {}) } };
}

function parsePath(text: string, original: string, base_url: string | undefined): SourceResult {
  const written = text.replaceAll("\\", "/");
  const path = fileOrEntry(written);
  const folder = path === written ? {} : FOLDER;
  const escaped = escapedPath(path);
  if (escaped.startsWith("/") || isDrivePath(text)) {
    const url = new URL(`file://${escaped.startsWith("/") ? "" : "/"}${escaped}`).href;
    return { source: { kind: "url", url, original, via: "path", ...folder } };
  }
  if (base_url === undefined || !URL.canParse(escaped, base_url)) {
    return { source: { kind: "path", path, original } };
  }
  return { source: { kind: "url", url: new URL(escaped, base_url).href, original, via: "path", ...folder } };
}

/** Returns a path as a URL contains it: `?` and `#` are characters of a file's name. */
export function escapedPath(path: string): string {
  return path.replace(/[%?#]/g, encodeURIComponent);
}

/** Returns the ESM host's URL of a package, such as `npm:name@1` or `jsr:@scope/name@1/file`. */
export function registryUrl(
  text: string,
  esm_host: string = DEFAULT_ESM_HOST,
): { url: string } | { problem: string; hint: string } {
  const registry = text.slice(0, 3).toLowerCase() === "npm" ? "npm" : "jsr";
  const rest = text.slice(4);
  const name = rest.startsWith("/") ? rest.slice(1) : rest;
  const parts = name.split("/");
  const [first = "", second = ""] = parts;
  const scoped = first.startsWith("@");
  const bare = scoped ? second.split("@")[0] : first.split("@")[0];
  const valid = bare !== "" && (!scoped || first.length > 1) && (registry === "npm" || scoped) &&
    parts.every((part) => part !== "" && part !== "." && part !== "..") && !/[?#\\]/.test(name);
  const problem = `it is not a valid ${registry} package: received ${describe(text)}`;
  const form = registry === "npm"
    ? "npm:name@version or npm:@scope/name@version/file"
    : "jsr:@scope/name@version";
  const hint = `write ${form}`;
  if (!valid) return { problem, hint };
  if (esm_host === NO_ESM_HOST) {
    return {
      problem: `${registry}: packages are disabled: received ${describe(text)}`,
      hint: "bundle the module with its packages (preamp module bundle), or set modules.esm_host",
    };
  }
  const url = `${esm_host.replace(/\/$/, "")}/${registry === "jsr" ? "jsr/" : ""}${name}`;
  return URL.canParse(url) ? { url: new URL(url).href } : { problem, hint };
}

const FOLDER = { folder: true } as const;

/**
 * Returns the entry file of a path. A last part without an extension is a folder, whose entry is `mod.ts`
 * unless its `deno.json` names another.
 */
function fileOrEntry(path: string): string {
  const last = path.slice(path.lastIndexOf("/") + 1);
  if (last === "") return `${path}mod.ts`;
  return /[^.]\.[a-z][a-z0-9]*$/i.test(last) ? path : `${path}/mod.ts`; // the "2" of tool-v1.2 is not an extension
}

function isPath(text: string): boolean {
  return /^(\/|\.\.?([\\/]|$))/.test(text) || isDrivePath(text);
}

/** Returns true for `shout.ts` and `tools/shout`, but not for a package name such as `amplifier-module-x`. */
function looksLikePath(text: string): boolean {
  return /^[^@\s:]+$/.test(text) && (text.includes("/") || /\.(?:[cm]?[jt]sx?|json)$/.test(text));
}

/** Endings of files, which are no names of hosts. */
const FILE_ENDING = /\.(?:[cm]?[jt]sx?|json|ya?ml|md|txt)$/i;

/** Returns what to write for an address without a scheme, such as `github.com/org/repo`; else undefined. */
export function addressHint(text: string): string | undefined {
  const git = /^(?:git@)?[^/:@]+[/:]/.test(text) ? gitSourceOfPage(text) : undefined;
  if (git !== undefined) return `write ${describe(git)}`;
  const [, host = ""] = /^((?:[a-z0-9-]+\.)+[a-z]{2,})\//i.exec(text) ?? [];
  return host === "" || FILE_ENDING.test(host)
    ? undefined
    : `write ${describe(`https://${text}`)}, or ${describe(`./${text}`)} for a path`;
}

/** Returns true for a Windows path such as `C:\\modules`. */
function isDrivePath(text: string): boolean {
  return /^[a-z]:[\\/]/i.test(text);
}

/** Returns the scheme of a URI in lower case (RFC 3986 §3.1), or undefined. */
function schemeOf(text: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
}

function orForms(result: { source: Source } | { problem: string }): SourceResult {
  return "source" in result ? result : refuse(result.problem);
}

function refuse(problem: string, hint: string = SOURCE_FORMS): SourceResult {
  return { problem, hint };
}

/**
 * Returns the key that specs are merged by: `instance_id` (or `id`), else `module`; undefined if it is not
 * a spec.
 */
export function keyOf(spec: unknown): string | undefined {
  if (typeof spec === "string") return spec;
  if (!isObject(spec)) return undefined;
  const key = spec.instance_id ?? spec.id ?? spec.module;
  return typeof key === "string" ? key : undefined;
}

/** Returns true if a list of names includes this spec, by its key or by its module. */
export function isListed(spec: unknown, names: ReadonlySet<string>): boolean {
  const key = keyOf(spec);
  if (key === undefined) return false;
  return names.has(key) || (isObject(spec) && typeof spec.module === "string" && names.has(spec.module));
}
