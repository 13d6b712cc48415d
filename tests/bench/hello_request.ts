/** `POST /v1/runs` of the benches: a run with one scripted answer and no tool. */

/** Headers of a request that is answered with the run object. */
export const HELLO_HEADERS = { "content-type": "application/json", accept: "application/json" };

/** Body of the request. */
export const HELLO_BODY: string = JSON.stringify({
  prompt: "Hello",
  plan: {
    session: { orchestrator: "loop-basic", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { response: "Hello from the bench." } }],
  },
});
