/** Creates the errors of loading a module, with file, line, column and a hint, and the name of a module in messages. */
import { isInline } from "../plan/lock.ts";
import { type ErrorDetail, PreampError } from "../sdk/errors.ts";
import { displayUrl } from "./display_url.ts";
import type { BundleProblem, LoadContext, LoadSpec, ModuleGraph } from "./types.ts";

/** Returns the error for problems. `failed`: errors of files that could not be fetched, by requested URL. */
export function problemError(
  problems: readonly BundleProblem[],
  failed: ReadonlyMap<string, PreampError>,
  name: string,
  base_url: string | undefined,
): PreampError {
  const details = problems.map((problem) => detailOf(problem, failed, base_url));
  const cause = problems.map(({ failed_url }) =>
    failed_url === undefined ? undefined : failed.get(failed_url)
  )
    .find((error) => error !== undefined);
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
  { message, hint, url, line, column, failed_url }: BundleProblem,
  failed: ReadonlyMap<string, PreampError>,
  base_url: string | undefined,
): ErrorDetail {
  const why = failed_url === undefined ? undefined : failed.get(failed_url)?.message;
  const file = url === undefined ? undefined : displayUrl(url, base_url);
  return {
    path: file ?? "",
    ...(file === undefined ? {} : { file }),
    ...(line === undefined ? {} : { line }),
    ...(column === undefined ? {} : { column }),
    message: why ?? message,
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

/** Returns the error for a module without an export `mount`. */
export function missingMountError(
  { url, exports }: ModuleGraph,
  name: string,
  base_url: string | undefined,
): PreampError {
  const has = exports.length === 0 ? "it exports nothing" : `it exports ${exports.slice(0, 10).join(", ")}`;
  const message = `Cannot load ${name}: it must export mount(coordinator, config): ${has}`;
  const hint = "write: export async function mount(coordinator, config) { … }";
  const file = displayUrl(url, base_url);
  const path = isInline(url) ? "" : file;
  return new PreampError("module_invalid", message, {
    details: [{ path, file, line: 1, column: 1, message, hint }],
  });
}
