/** Determines how a file is read: by its URL and import attribute, never by response headers, so that a hash fixes the meaning. */

/** Loaders of esbuild. */
export type FileKind = "js" | "jsx" | "ts" | "tsx" | "json" | "text" | "binary";

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
