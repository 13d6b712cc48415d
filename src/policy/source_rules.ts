/**
 * Which URLs a plan's modules may come from: scheme by origin of the plan, the allow-list, private addresses (trust.md;
 * threats T1-T5). Asked for the entry, for each import, for each hop of a redirect, and for each address before it is
 * connected to. Pure: names are resolved by whoever asks.
 */
import { type AddressKind, addressKind } from "./address_kinds.ts";
import type { Origin } from "./plan_trust.ts";
import type { Policy } from "./policy.ts";
import { DEFAULT_ESM_HOST, NO_ESM_HOST } from "../plan/source/source.ts";
import { defaultPort, isLoopbackName, matchesPrefix, mayClimb, namesHost } from "./url_prefixes.ts";

/** What URLs are judged by. */
export interface SourceRules {
  /** Whose plan it is. */
  readonly origin: Origin;
  /** URL prefixes that callers' plans may load from. */
  readonly allow: readonly string[];
  /** Private and loopback hosts that may be reached. */
  readonly private_hosts: readonly string[];
  /** What the plan itself names; an operator's own word about a private host or a port. */
  readonly entry: URL;
}

/** How a URL came up. */
export interface SourceUse {
  /** Named by the plan, imported by a file, or where a server sent us. */
  readonly as: "entry" | "import" | "redirect";
  /** The importing file, or the URL that redirected. */
  readonly from?: URL;
}

/** Why a URL may not be loaded, as the second half of "Cannot load <url>: …". */
export interface SourceProblem {
  readonly fact: string;
  readonly hint: string;
}

/** Returns the rules for a plan's module. */
export function sourceRules(origin: Origin, policy: Pick<Policy, "modules">, entry: URL): SourceRules {
  return {
    origin,
    allow: policy.modules.allow,
    private_hosts: [...policy.modules.private_hosts, ...ownEsmHost(policy.modules)],
    entry,
  };
}

/** A host that the operator names for packages may be a private one; the default may not become one. */
function ownEsmHost({ esm_host }: Policy["modules"]): string[] {
  return esm_host === NO_ESM_HOST || esm_host === DEFAULT_ESM_HOST ? [] : [new URL(esm_host).host];
}

/** Returns why a URL may not be loaded, before any packet is sent for it; undefined when it may. */
export function sourceProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (url.username !== "" || url.password !== "") {
    return problem(
      "it holds a user name or password",
      "give a module its credentials through config and ${VAR}",
    );
  }
  switch (url.protocol) {
    case "https:":
    case "http:":
      return webProblem(url, use, rules);
    case "file:":
      return fileProblem(url, use, rules);
    case "data:":
      return dataProblem(use, rules);
    default:
      return problem(
        `${url.protocol} is not loaded`,
        use.as === "import"
          ? "import ES modules by URL, such as https://esm.sh/NAME@VERSION"
          : "take an https:// URL",
      );
  }
}

/**
 * Returns why an address of a URL's host may not be connected to; undefined when it may. Every address of a host is asked
 * for, and one that may not be is enough to refuse them all (T3).
 */
export function addressProblem(url: URL, address: string, rules: SourceRules): SourceProblem | undefined {
  const kind = addressKind(address);
  const named = namesHost(url, rules.private_hosts);
  if (named && kind !== "invalid") return undefined;
  if (kind === "public") return url.protocol === "https:" ? undefined : plainHttp();
  const own = rules.origin === "operator" && url.host === rules.entry.host &&
    url.protocol === rules.entry.protocol;
  if (own && kind !== "invalid" && (url.protocol === "https:" || kind === "loopback")) return undefined;
  if (own && kind !== "invalid") return plainHttp();
  return problem(
    `its host has ${describeKind(kind)}`,
    "an operator may name the host in modules.private_hosts",
  );
}

/** Returns true when the policy trusts a URL's code like its own (`modules.inline`). */
export function isTrustedInline(url: string, policy: Pick<Policy, "modules">): boolean {
  return URL.canParse(url) && matchesPrefix(new URL(url), policy.modules.inline);
}

function webProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (use.as === "redirect" && use.from?.protocol === "https:" && url.protocol === "http:") {
    return problem("a redirect leads from https to http", "name an https:// URL that stays on https");
  }
  if (rules.origin === "caller") {
    if (!matchesPrefix(url, rules.allow)) return notAllowed(use, rules);
    if (mayClimb(url.pathname)) {
      return problem("its path holds an encoded slash or dots", "write the path without %2F, %5C or %2E");
    }
  }
  const named = namesHost(url, rules.private_hosts);
  const literal = addressKind(url.hostname);
  if (literal !== "invalid") {
    const refused = addressProblem(url, url.hostname, rules);
    if (refused) return refused;
  } else if (isLoopbackName(url.hostname)) {
    const refused = addressProblem(url, "127.0.0.1", rules);
    if (refused) return refused;
  } else if (url.protocol === "http:" && !named) {
    return plainHttp();
  }
  return named ? undefined : portProblem(url, rules);
}

/** Port 443, or a port that plan or policy named (T1): a module must not scan ports through its imports. */
function portProblem(url: URL, rules: SourceRules): SourceProblem | undefined {
  const port = url.port || defaultPort(url.protocol);
  const known = port === "443" || url.host === rules.entry.host ||
    rules.origin === "caller" || matchesPrefix(url, rules.allow);
  return known ? undefined : problem(
    `port ${port} was named by no plan or policy`,
    "use port 443, or have the operator name the host in modules.private_hosts",
  );
}

/** Files belong to the operator's plan and to files themselves, never to something that came over the network (T4). */
function fileProblem(url: URL, use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (rules.origin === "caller") {
    return problem("a request may not name files of this machine", "take an https:// URL");
  }
  if (url.host !== "") return problem("a file: URL has no host", "write file:///path");
  if (use.as === "entry" || (use.as === "import" && use.from?.protocol === "file:")) return undefined;
  return problem("only files may import files", "import it by the URL it is served at");
}

/** Inline code: for a caller's plan a switch of the policy (T5). Inside a module it is a part of that module's bytes. */
function dataProblem(use: SourceUse, rules: SourceRules): SourceProblem | undefined {
  if (use.as === "redirect") return problem("a redirect may not lead to data:", "serve the file itself");
  if (use.as === "import" || rules.origin === "operator" || rules.allow.includes("data:")) return undefined;
  return problem('the policy does not list "data:" in modules.allow', allowed(rules));
}

function notAllowed(use: SourceUse, rules: SourceRules): SourceProblem {
  const how = use.as === "redirect"
    ? "a redirect leads out of modules.allow"
    : use.as === "import"
    ? "an import leads out of modules.allow"
    : "the policy does not list it in modules.allow";
  return problem(how, allowed(rules));
}

function allowed(rules: SourceRules): string {
  return rules.allow.length === 0
    ? "the policy allows no URLs in requests: use built-in modules, or a plan of the operator's"
    : `allowed are ${rules.allow.join(", ")}`;
}

function plainHttp(): SourceProblem {
  return problem("http: is for loopback and modules.private_hosts only", "take the https:// URL");
}

function describeKind(kind: AddressKind): string {
  return kind === "invalid" ? "an address that cannot be read" : `a ${kind} address`;
}

function problem(fact: string, hint: string): SourceProblem {
  return { fact, hint };
}
