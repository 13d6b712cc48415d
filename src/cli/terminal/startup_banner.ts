/** The text that `serve` prints after its address: an example request to paste into a shell. */

/** Options of {@link startupBanner}. */
export interface StartupBanner {
  /** Base URL. */
  url: string;
  /**
   * Authentication: a `generated` key is valid for this start and printed; `configured` keys are never printed;
   * `none` needs no header.
   */
  auth: { kind: "generated"; key: string } | { kind: "configured" } | { kind: "none" };
  /** Whether a request without a plan gets the built-in demo, with its tool call and its approval. */
  demo: boolean;
}

const PROMPT = "What is 6 × 7?";

/** Returns the text that follows the first line, the base URL. */
export function startupBanner({ url, auth, demo }: StartupBanner): string {
  const key = auth.kind === "generated" ? auth.key : "$PREAMP_API_KEY";
  const header = auth.kind === "none" ? "" : ` \\\n  -H "Authorization: Bearer ${key}"`;
  const before = auth.kind === "configured" ? "# PREAMP_API_KEY is one of the keys of this server.\n" : "";
  const run = `curl -N ${url}/v1/runs${header} \\
  -H "Accept: text/event-stream" \\
  -H "Content-Type: application/json" \\
  -d '{"prompt": "${demo ? PROMPT : "Hello"}"}'`;
  if (!demo) return `\n# Run the plan "default" and watch its events:\n${before}${run}\n`;
  return `
# A run with a tool call that needs an approval. Paste this into another shell:
${before}${run}

# The run now waits for the approval. Allow the call from a third shell; the run continues in the second:
waiting=$(curl -s "${url}/v1/runs?status=awaiting_approval&limit=1"${header})
run=$(echo "$waiting" | grep -o 'run_[0-9A-Za-z]*' | head -n 1)
approval=$(echo "$waiting" | grep -o 'apr_[0-9A-Za-z]*' | head -n 1)
curl -s "${url}/v1/runs/$run/approvals/$approval"${header} \\
  -H "Content-Type: application/json" \\
  -d '{"decision": "allow"}'
`;
}
