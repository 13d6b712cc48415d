/**
 * Resolves a specifier in a module to a URL or a part of the SDK, and determines how a file is read: by
 * its URL and import attribute, never by response headers, so that a hash fixes the meaning. Also used in
 * the bundler's process.
 */
import { didYouMean } from "../../sdk/findings.ts";
import { describe } from "../../sdk/value_path.ts";
import { registryUrl } from "../../plan/source/source.ts";

/** Bare specifiers of the parts that the host provides (src/docs/modules.md). */
export const SDK_SPECIFIERS: readonly string[] = [
  "preamp",
  "preamp/base",
  "preamp/loop",
  "preamp/context",
  "preamp/provider",
  "preamp/web",
  "preamp/testing",
  "zod",
];

/**
 * Bare specifiers of the packages of built-in modules. The host provides them too, in its own versions, so
 * that these modules can be loaded by their source.
 */
export const PACKAGE_SPECIFIERS: readonly string[] = [
  "@ai-sdk/anthropic/internal",
  "@ai-sdk/deepseek",
  "@ai-sdk/google",
  "@ai-sdk/groq",
  "@ai-sdk/mistral",
  "@ai-sdk/openai-compatible",
  "@ai-sdk/openai/internal",
  "@ai-sdk/xai",
  "@mdream/js",
  "@modelcontextprotocol/client",
  "diff",
  "ignore",
  "js-yaml",
  "jschardet",
  "re2js",
  "unbash",
];

const PROVIDED: ReadonlySet<string> = new Set([...SDK_SPECIFIERS, ...PACKAGE_SPECIFIERS]);

/** Returns whether the host provides what this specifier names. */
export function isProvided(specifier: string): boolean {
  return PROVIDED.has(specifier);
}

/** Result of resolving a specifier. */
type Resolved = Readonly<
  | { kind: "url"; url: string }
  | { kind: "sdk"; name: string }
  | { kind: "refused"; fact: string; hint: string }
>;

/**
 * Resolves `specifier` in the file at `importer`.
 * @param esm_host URL of the host that serves npm and JSR packages as ES modules, or `none`.
 */
export function resolveSpecifier(specifier: string, importer: string, esm_host: string): Resolved {
  if (isProvided(specifier)) return { kind: "sdk", name: specifier };
  const refused = (fact: string, hint: string): Resolved => {
    return { kind: "refused", fact: `${describe(specifier)}: ${fact}`, hint };
  };
  if (/^\.{0,2}\//.test(specifier)) {
    return URL.canParse(specifier, importer)
      ? { kind: "url", url: withoutHash(new URL(specifier, importer)) }
      : refused("it is relative, and a data: URL has no folder", "import it by its URL");
  }
  switch (schemeOf(specifier)) {
    case "https":
    case "http":
    case "file":
    case "data":
      return URL.canParse(specifier)
        ? { kind: "url", url: withoutHash(new URL(specifier)) }
        : refused("it is not a valid URL", "write the whole URL of an ES module");
    case "npm":
    case "jsr": {
      const found = registryUrl(specifier, esm_host);
      return "problem" in found ? refused(found.problem, found.hint) : { kind: "url", url: found.url };
    }
    case "node":
      return refused(
        "Node's modules are not available; a module has web APIs and what its permissions allow",
        "use fetch, crypto, Deno's own functions, or a tool that the plan mounts",
      );
    case undefined: {
      const meant = didYouMean(specifier, SDK_SPECIFIERS);
      return refused(
        "it is a bare specifier, and there is no import map",
        `${meant === undefined ? "" : `did you mean "${meant}"? `}use ${
          SDK_SPECIFIERS.join(", ")
        }, a path that starts with "./", npm:${specifier}@VERSION, or a URL such as ` +
          `https://esm.sh/${specifier}`,
      );
    }
    default:
      return refused("its scheme is not supported", "import ES modules by https:// URL or by path");
  }
}

function schemeOf(text: string): string | undefined {
  return /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
}

/** Removes the fragment, which is not sent to servers. */
function withoutHash(url: URL): string {
  if (url.protocol !== "data:") url.hash = "";
  return url.href;
}

/** Loaders of esbuild. */
type FileKind = "js" | "jsx" | "ts" | "tsx" | "json" | "text" | "binary";

const BY_EXTENSION: Readonly<Record<string, FileKind>> = {
  js: "js",
  mjs: "js",
  cjs: "js",
  jsx: "jsx",
  ts: "ts",
  mts: "ts",
  cts: "ts",
  tsx: "tsx",
  json: "json",
};

/** Supported values of `with {type: "…"}`. */
const BY_ATTRIBUTE: Readonly<Record<string, FileKind>> = { json: "json", text: "text", bytes: "binary" };

/** Returns the kind for an import attribute; null if the attribute is not supported. */
export function kindOfAttribute(type: string | undefined): FileKind | null | undefined {
  if (type === undefined) return undefined;
  return Object.hasOwn(BY_ATTRIBUTE, type) ? BY_ATTRIBUTE[type] : null;
}

/** Returns the kind of a file that is imported without an attribute. The default is JavaScript. */
export function kindOfUrl(text: string): FileKind {
  const url = new URL(text);
  if (url.protocol === "data:") return kindOfMediaType(mediaTypeOf(text));
  const last = url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
  const extension = last.slice(last.lastIndexOf(".") + 1).toLowerCase();
  return last.includes(".") && Object.hasOwn(BY_EXTENSION, extension) ? BY_EXTENSION[extension]! : "js";
}

/** Returns whether files of this kind can have imports. */
export function mayImport(kind: FileKind): boolean {
  return kind === "js" || kind === "jsx" || kind === "ts" || kind === "tsx";
}

/** Returns the media type of a data: URL in lower case, without parameters (RFC 2397). */
export function mediaTypeOf(dataUrl: string): string {
  const end = dataUrl.indexOf(",");
  const head = dataUrl.slice("data:".length, end === -1 ? undefined : end);
  return (head.split(";", 1)[0] ?? "").trim().toLowerCase() || "text/plain";
}

function kindOfMediaType(type: string): FileKind {
  if (type === "application/json" || type === "text/json") return "json";
  if (type.endsWith("typescript")) return "ts";
  if (type.endsWith("tsx")) return "tsx";
  if (type.endsWith("jsx")) return "jsx";
  return "js";
}
