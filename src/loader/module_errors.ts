/**
 * Creates the errors of loading a module, with file, line, column and a hint, and the names of modules and
 * files in messages.
 */
import { isInline } from "../plan/lock.ts";
import { type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { mediaTypeOf } from "./fetch/specifiers.ts";
import type { BundleProblem, LoadContext, LoadSpec, ModuleGraph } from "./types.ts";

/** Returns the error for problems. `failed`: errors of files that could not be fetched, by requested URL. */
export function problemError(
  problems: readonly BundleProblem[],
  failed: ReadonlyMap<string, PreampError>,
  name: string,
  base_url: string | undefined,
): PreampError {
  const causeOf = ({ failed_url }: BundleProblem) =>
    failed_url === undefined ? undefined : failed.get(failed_url);
  const details = problems.map((problem) => detailOf(problem, causeOf(problem), base_url));
  const cause = problems.map(causeOf).find((error) => error !== undefined);
  const [first] = details;
  if (!first) return new PreampError("module_invalid", `Cannot load ${name}: it cannot be bundled`);
  const place = first.line === undefined ? first.path : `${first.path}:${first.line}:${first.column ?? 1}`;
  const more = details.length > 1 ? ` (and ${details.length - 1} more)` : "";
  const hint = first.hint === undefined ? "" : `: ${first.hint}`;
  return new PreampError(
    cause?.code ?? "module_invalid",
    `Cannot load ${name}: ${place === "" ? "" : `${place}: `}${first.message}${hint}${more}`,
    { details, cause, ...(cause ? { facts: cause.facts } : {}) },
  );
}

function detailOf(
  { message, hint, url, line, column }: BundleProblem,
  cause: PreampError | undefined,
  base_url: string | undefined,
): ErrorDetail {
  const file = url === undefined ? undefined : displayUrl(url, base_url);
  return {
    path: file ?? "",
    ...(file === undefined ? {} : { file }),
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
    message: cause?.message ?? message,
    ...(hint === undefined ? {} : { hint }),
  };
}

/** Returns `module "tool-x" (https://…)`. */
export function moduleLabel({ module, source }: LoadSpec, { base_url }: LoadContext): string {
  const from = source.kind === "url"
    ? displayUrl(source.url, base_url)
    : source.kind === "path"
    ? source.original
    : "";
  if (module === undefined) return from;
  return from === "" ? `module "${module}"` : `module "${module}" (${from})`;
}

/** What a module's file must export, in messages. */
export const MUST_EXPORT = "export mount(coordinator, config), or a default such as defineTool(…)";

/** Returns whether a module exports what can be mounted. */
export function canMount({ exports }: ModuleGraph): boolean {
  return exports.includes("mount") || exports.includes("default");
}

/** Returns the error for a module that exports neither `mount` nor a default. */
export function missingMountError(
  { url, exports }: ModuleGraph,
  name: string,
  base_url: string | undefined,
): PreampError {
  const has = exports.length === 0 ? "it exports nothing" : `it exports ${exports.slice(0, 10).join(", ")}`;
  const message = `Cannot load ${name}: it must ${MUST_EXPORT}: ${has}`;
  const hint =
    "write: export default defineTool({ … }), or export async function mount(coordinator, config) { … }";
  const file = displayUrl(url, base_url);
  const path = isInline(url) ? "" : file;
  return new PreampError("module_invalid", message, {
    details: [{ path, file, line: 1, column: 1, message, hint }],
  });
}

/**
 * Returns a URL in display form: without its query, which may contain a signature, and without folders of
 * this machine. A local file is relative to `base_url`, or only its name.
 */
export function displayUrl(text: string, base_url?: string): string {
  if (text.startsWith("data:")) return `data:${mediaTypeOf(text).slice(0, 40)},…`;
  if (!URL.canParse(text)) return text.slice(0, 200);
  const url = new URL(text);
  if (url.protocol === "file:") return displayFile(url, base_url);
  return `${url.origin}${url.pathname}${url.search === "" ? "" : "?…"}`.slice(0, 500);
}

function displayFile(url: URL, base_url: string | undefined): string {
  const path = decode(url.pathname);
  if (base_url?.startsWith("file:")) {
    const base = decode(new URL(".", base_url).pathname);
    if (path.startsWith(base)) return `./${path.slice(base.length)}`;
  }
  return `…/${path.slice(path.lastIndexOf("/") + 1)}`;
}

function decode(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname; // a lone "%"
  }
}
