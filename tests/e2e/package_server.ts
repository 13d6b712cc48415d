/**
 * This project as a registry of packages serves it: bare specifiers of its import map are written out, as
 * `deno publish` does, and files come over HTTP. Knows the forms of JSR's files; the tests decide what is
 * done with the package.
 */
import { ROOT } from "./program.ts";

/** A registry with one package. */
export interface PackageServer extends AsyncDisposable {
  /** For the variable `JSR_URL`. */
  readonly url: string;
  /** Name of the package, such as `@scope/name`. */
  readonly name: string;
  readonly version: string;
}

interface Manifest {
  name: string;
  version: string;
  exports: Record<string, string>;
  imports: Record<string, string>;
  publish: { include: string[] };
}

/** Serves the package on loopback. */
export async function servePackage(): Promise<PackageServer> {
  const manifest = JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`)) as Manifest;
  const { name, version, exports } = manifest;
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const path of manifest.publish.include) await addFiles(path, files, manifest.imports);
  const sizes: Record<string, { size: number; checksum: string }> = {};
  for (const [path, bytes] of files) {
    sizes[`/${path}`] = { size: bytes.length, checksum: `sha256-${await sha256(bytes)}` };
  }
  const documents: Record<string, unknown> = {
    [`/${name}/meta.json`]: { scope: "preamp", name: "preamp", latest: version, versions: { [version]: {} } },
    [`/${name}/${version}_meta.json`]: { manifest: sizes, exports },
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) => {
    const { pathname } = new URL(url);
    if (Object.hasOwn(documents, pathname)) return Response.json(documents[pathname]);
    const path = pathname.slice(`/${name}/${version}/`.length);
    const bytes = pathname.startsWith(`/${name}/${version}/`) ? files.get(path) : undefined;
    return bytes
      ? new Response(bytes, { headers: { "content-type": typeOf(path) } })
      : new Response(null, { status: 404 });
  });
  return {
    url: `http://127.0.0.1:${server.addr.port}/`,
    name,
    version,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

async function addFiles(
  path: string,
  files: Map<string, Uint8Array<ArrayBuffer>>,
  imports: Readonly<Record<string, string>>,
): Promise<void> {
  if (!(await Deno.stat(ROOT + path)).isDirectory) {
    const bytes = await Deno.readFile(ROOT + path);
    const text = /\.[jt]s$/.test(path)
      ? withoutImportMap(new TextDecoder().decode(bytes), path, imports)
      : null;
    files.set(path, text === null ? bytes : new TextEncoder().encode(text));
    return;
  }
  for await (const { name } of Deno.readDir(ROOT + path)) await addFiles(`${path}/${name}`, files, imports);
}

/** Returns code whose bare specifiers are those of packages, or relative. */
function withoutImportMap(code: string, path: string, imports: Readonly<Record<string, string>>): string {
  return code.replace(/(\bfrom |\bimport |\bimport\()"([^"./][^"\n]*)"/g, (whole, before, specifier) => {
    const target = resolved(specifier, imports);
    if (target === undefined) return whole;
    const here = target.startsWith("./")
      ? "../".repeat(path.split("/").length - 1) + target.slice(2)
      : target;
    return `${before}"${here}"`;
  });
}

function resolved(specifier: string, imports: Readonly<Record<string, string>>): string | undefined {
  if (Object.hasOwn(imports, specifier)) return imports[specifier];
  const start = Object.keys(imports).find((name) => specifier.startsWith(`${name}/`));
  return start === undefined ? undefined : `${imports[start]}${specifier.slice(start.length)}`;
}

function typeOf(path: string): string {
  if (path.endsWith(".ts")) return "text/typescript";
  if (path.endsWith(".js")) return "text/javascript";
  return path.endsWith(".json") ? "application/json" : "application/octet-stream";
}

async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).toHex();
}
