/**
 * Bundler for hosts where no child process can be started. Accepts single files that need no bundling.
 * Bundles other modules on this thread, only from sources that the operator trusts like the program itself: a
 * hanging source would block the server.
 */
import { errorMessage, PreampError } from "../../sdk/errors.ts";
import { isProvided, kindOfUrl } from "../fetch/specifiers.ts";
import type {
  BundleAnswer,
  Bundler,
  BundlerClient,
  BundleRequest,
  BundlerFile,
  ImportsOptions,
} from "../types.ts";
import { bundleGraph, includedWasm, startEsbuild } from "./bundle.ts";
import { BundlerQueue, FailedSources, problemOfFailure } from "./bundler_queue.ts";
import { findImports, sealImports } from "./imports.ts";
import { readHead } from "./publishable_bundle.ts";
import { NOTHING_DECLARED, readDeclared } from "./static_manifest.ts";

/** Most characters of a bundle whose declaration is read on this thread: a hostile one takes a second. */
const MAX_DECLARING_CHARS = 256 * 1024;

/**
 * Creates a bundler in this process; esbuild is loaded by the first bundling.
 * @param reason Reason for which there is no child process, as the second half of a sentence.
 */
export function createInProcessBundler(reason: string): Bundler {
  return new InProcessBundler(reason);
}

class InProcessBundler implements Bundler {
  readonly #queue = new BundlerQueue(() => {});
  readonly #failed = new FailedSources();
  readonly #reason: string;
  #esbuild: ReturnType<typeof startEsbuild> | undefined;

  constructor(reason: string) {
    this.#reason = reason;
  }

  async imports(file: BundlerFile, options: ImportsOptions, { trusted }: BundlerClient): Promise<string[]> {
    return trusted ? await findImports(file, options) : [];
  }

  async bundle(request: BundleRequest, { name, owner, trusted }: BundlerClient): Promise<BundleAnswer> {
    const whole = await alreadyBundled(request);
    if (whole) return whole;
    if (!trusted) {
      throw new PreampError("module_load_failed", `Cannot bundle ${name}: ${this.#reason}`);
    }
    return await this.#queue.add({ owner, short: false }, async () => {
      this.#failed.check(request.files, name);
      const esbuild = await (this.#esbuild ??= ownWasm().then(startEsbuild));
      try {
        return await bundleGraph(esbuild, request);
      } catch (error) {
        this.#esbuild = undefined; // a failed esbuild cannot be used again
        await esbuild.stop();
        throw this.#failed.add(request.files, name, problemOfFailure(errorMessage(error)));
      }
    });
  }

  async close(): Promise<void> {
    await this.#queue.done();
    await this.#esbuild?.then((esbuild) => esbuild.stop(), () => {}); // it may not have started
  }
}

async function ownWasm(): Promise<WebAssembly.Module | ArrayBuffer> {
  if (Deno.build.standalone) return await includedWasm();
  const source = new URL("./wasm_source.js", import.meta.url).href; // computed specifier: see that file
  return (await import(source)).default;
}

/**
 * Resolves to the bundle of a single JavaScript file that imports only the SDK; undefined for other graphs.
 */
async function alreadyBundled({ entry, files }: BundleRequest): Promise<BundleAnswer | undefined> {
  const [file, more] = files;
  if (!file || more || file.url !== entry || kindOfUrl(entry) !== "js") return undefined;
  const { uses, code } = readHead(new TextDecoder().decode(file.bytes));
  if (!uses.every(isProvided) || code.includes("import.meta")) return undefined;
  try {
    const sealed = await sealImports(code);
    if (sealed.refused.length > 0) return undefined;
    return {
      kind: "bundle",
      code,
      inputs: [entry],
      inline: [],
      exports: sealed.exports,
      uses,
      imports_refused: [],
      declared: sealed.exports.includes("module")
        ? readDeclared(code, MAX_DECLARING_CHARS)
        : NOTHING_DECLARED,
    };
  } catch {
    return undefined; // it has imports or invalid syntax: esbuild reports which
  }
}
