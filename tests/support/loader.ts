/** For tests of the loader: a server that counts, a context, a bundler for all tests of a file. */
import { createBundlerProcess } from "../../src/loader/bundler/bundler_process.ts";
import { createLoader, type Loader, type LoaderOptions } from "../../src/loader/loader.ts";
import type { Bundler, LoadContext, LoadedModule, LoadSpec } from "../../src/loader/types.ts";
import type { Policy } from "../../src/policy/policy.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { parseSource } from "../../src/plan/source/source.ts";

export { refusal } from "./plans.ts";

/** What a path answers: text, or whatever a handler makes. */
export type Answer = string | Uint8Array<ArrayBuffer> | ((request: Request) => Response | Promise<Response>);

/** A server on loopback whose files are a table. */
export interface FileServer extends AsyncDisposable {
  /** Base URL, with a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Paths in the order they were asked for. */
  readonly requests: string[];
  files: Record<string, Answer>;
}

/** Starts a server; `tls`: with this certificate. */
export function serveFiles(files: Record<string, Answer>, tls?: { cert: string; key: string }): FileServer {
  const requests: string[] = [];
  const server = { files };
  const listening = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    onListen() {},
    ...(tls ?? {}),
  }, async (request) => {
    const { pathname, search } = new URL(request.url);
    requests.push(pathname + search);
    const answer = server.files[pathname.slice(1)];
    if (answer === undefined) return new Response("no such file", { status: 404 });
    return typeof answer === "function" ? await answer(request) : new Response(answer);
  });
  const { port } = listening.addr;
  return Object.assign(server, {
    url: `${tls ? "https" : "http"}://127.0.0.1:${port}/`,
    port,
    requests,
    [Symbol.asyncDispose]: () => listening.shutdown(),
  });
}

/** Returns the policy of a server that lets callers load from these prefixes. */
export function policyOf(
  modules: Partial<Policy["modules"]> = {},
  limits: Partial<Policy["limits"]> = {},
): Policy {
  const policy = defaultPolicy();
  policy.modules.esm_host = "none"; // no test asks a host of the world
  Object.assign(policy.modules, modules);
  Object.assign(policy.limits, limits);
  return policy;
}

/** Returns a context: an operator's under the default policy by default. */
export function contextOf(more: Partial<LoadContext> = {}): LoadContext {
  return { origin: "operator", namespace: "test", policy: policyOf(), ...more };
}

/** Returns a spec whose source is what a plan would say. */
export function specOf(source: string, more: Partial<LoadSpec> & { base_url?: string } = {}): LoadSpec {
  const { base_url, ...spec } = more;
  const parsed = parseSource(source, base_url === undefined ? {} : { base_url });
  if (!("source" in parsed)) throw new Error(parsed.problem);
  return { module: "tool-test", source: parsed.source, ...spec };
}

/** A loader that is closed at the end of the scope, and that prepares and links in one step. */
export interface TestLoader extends Loader, AsyncDisposable {
  load(spec: LoadSpec, context: LoadContext): Promise<LoadedModule>;
}

/** Returns a loader for tests. */
export function loaderOf(options: LoaderOptions = {}): TestLoader {
  const loader = createLoader(options);
  return Object.assign(loader, {
    load: async (spec: LoadSpec, context: LoadContext) =>
      await loader.link(await loader.prepare(spec, context), spec, context),
    [Symbol.asyncDispose]: () => loader.close(),
  });
}

/** Returns a bundler that all loaders of a test file share; it ends after the last test. */
export function sharedBundler(): Bundler {
  const shared = createBundlerProcess();
  Deno.test.afterAll(() => shared.close());
  return {
    bundle: (request, client) => shared.bundle(request, client),
    imports: (file, max, client) => shared.imports(file, max, client),
    close: () => Promise.resolve(),
  };
}
