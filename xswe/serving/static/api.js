"use strict";
// The OpenAPI document as a page: operations, their fields, and a command to try each.
(async () => {
  const { by, el } = app;
  const EXAMPLES = {
    "/v1/embeddings": { input: ["A cat sleeps.", "猫が寝ている。"], encoding_format: "float" },
    "/search": { query: "late train", k: 3 },
    "/phrases": { query: "late train", languages: ["de", "ja"] },
    "/compare": { left: ["A cat sleeps."], right: ["Eine Katze schläft."] },
    "/mine": { source: ["A cat sleeps."], target: ["Eine Katze schläft."] },
    "/export": { format: "tmx", units: [[{ language: "en", text: "cat" }, { language: "de", text: "Katze" }]] },
  };
  const name = (schema) => {
    if (schema.$ref) return schema.$ref.split("/").at(-1);
    if (schema.anyOf) return schema.anyOf.map(name).join(" or ");
    if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" or ");
    if (schema.type === "array") return schema.prefixItems ? `[${schema.prefixItems.map(name).join(", ")}]` : `list of ${name(schema.items || {})}`;
    return schema.type || "any";
  };
  function fields(schema) {
    const rows = Object.entries(schema.properties || {}).map(([field, kind]) => el("tr", {},
      el("th", { scope: "row" }, el("code", {}, field)), el("td", {}, name(kind)),
      el("td", {}, (schema.required || []).includes(field) ? "needed" : kind.default === undefined ? "" : JSON.stringify(kind.default))));
    return el("div", { class: "scroll" }, el("table", {}, el("caption", {}, schema.description || ""),
      el("thead", {}, el("tr", {}, ...["Field", "Kind", "Unless given"].map((one) => el("th", { scope: "col" }, one)))), el("tbody", {}, ...rows)));
  }
  await app.trying(by("operations"), async () => {
    const document_ = await (await app.ask("/openapi.json")).json();
    const schemas = document_.components.schemas;
    const key = document_.security ? " -H 'Authorization: Bearer KEY'" : "";
    by("operations").replaceChildren(...Object.entries(document_.paths).map(([path, methods]) => {
      const main = methods.post || methods.get;
      const parts = [el("h2", {}, el("code", {}, path)), el("p", {}, `${Object.keys(methods).join(" or ").toUpperCase()}: ${main.summary}`)];
      const sent = methods.post ? " -H 'Content-Type: application/json' -d '" + JSON.stringify(EXAMPLES[path] || {}) + "'" : "";
      parts.push(el("pre", { class: "summary", tabindex: "0" }, `curl ${location.origin}${path}${key}${sent}`));
      if (methods.post) parts.push(fields(schemas[main.requestBody.content["application/json"].schema.$ref.split("/").at(-1)]));
      const answer = main.responses["200"].content["application/json"];
      if (answer && answer.schema.$ref) {
        const kind = answer.schema.$ref.split("/").at(-1);
        parts.push(el("details", {}, el("summary", {}, `Answer: ${kind}`), fields(schemas[kind])));
      }
      return el("section", {}, ...parts);
    }));
  });
})();
