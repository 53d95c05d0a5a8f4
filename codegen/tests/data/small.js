const apiSchema = [
  {
    "path": "/version", "text": "version", "leaf": 1,
    "info": {
      "GET": {
        "method": "GET", "name": "version", "allowtoken": 1, "description": "made up",
        "parameters": { "additionalProperties": 0, "properties": {} },
        "permissions": { "user": "all", "description": "made up" },
        "returns": { "type": "object", "properties": {
          "description": { "type": "string", "description": "a column of this name is a fact" },
          "title": { "type": "string", "optional": 1 }
        } }
      }
    }
  },
  {
    "path": "/nodes", "text": "nodes", "leaf": 0,
    "children": [
      {
        "path": "/nodes/{node}", "text": "{node}", "leaf": 0,
        "children": [
          {
            "path": "/nodes/{node}/qemu", "text": "qemu", "leaf": 1,
            "info": {
              "POST": {
                "method": "POST", "name": "create", "allowtoken": 1, "protected": 1, "proxyto": "node",
                "parameters": {
                  "additionalProperties": 0,
                  "properties": {
                    "node": { "type": "string", "format": "pve-node", "typetext": "<string>" },
                    "vmid": { "type": "integer", "minimum": 100, "maximum": 999999999, "typetext": "<integer> (100 - 999999999)" },
                    "bios": { "type": "string", "enum": ["seabios", "ovmf"], "optional": 1, "typetext": "<ovmf | seabios>" },
                    "tag": { "type": "string", "pattern": "\\w+", "optional": 1, "typetext": "\\w+" },
                    "limit": { "type": "number", "minimum": "0", "optional": "1", "typetext": "<number> (0 - N)" },
                    "size": { "type": "string", "format_description": "SIZE", "optional": 1, "typetext": "<SIZE>" },
                    "when": { "type": "string", "optional": 1, "typetext": "HH:MM" },
                    "cpu": { "type": "string", "format": "pve-vm-cpu-conf", "optional": 1, "typetext": "[[cputype=]<string>]" },
                    "net[n]": {
                      "type": "string", "optional": 1, "typetext": "[bridge=<bridge>] [,firewall=<1|0>]",
                      "format": {
                        "model": { "type": "string", "default_key": 1, "enum": ["virtio", "e1000"], "description": "made up" },
                        "virtio": { "alias": "macaddr", "keyAlias": "model" },
                        "macaddr": { "type": "string", "optional": 1, "format_description": "XX" },
                        "description": { "type": "string", "optional": 1, "verbose_description": "made up" }
                      }
                    }
                  }
                },
                "permissions": { "check": ["or",
                  ["perm", "/vms/{vmid}", ["VM.Allocate"]],
                  ["and", ["perm", "/pool/{pool}", ["VM.Allocate", "Pool.Audit"], "any", 1, "require_param", "pool"],
                          ["userid-group", ["User.Modify"], "groups_param", "create"]],
                  ["userid-param", "self"], ["userid-param", "Realm.AllocateUser"], ["perm-modify", "{path}"]] },
                "returns": { "type": "string" }
              },
              "GET": {
                "method": "GET", "name": "vmlist", "allowtoken": 1, "protected": 0, "proxyto": null,
                "parameters": { "properties": { "node": { "type": "string" } } },
                "returns": { "type": "array", "items": { "type": "object" }, "links": [ { "rel": "child", "href": "{vmid}" } ] }
              }
            }
          },
          {
            "path": "/nodes/{node}/apt", "text": "apt", "leaf": 1,
            "info": {
              "PUT": {
                "method": "PUT", "name": "x", "allowtoken": 0,
                "parameters": { "properties": { "id": { "type": "string", "min": 1, "enum": null, "default": null } } },
                "returns": { "type": "null" }
              }
            }
          }
        ]
      }
    ]
  }
]
;

let viewer = [ not, json ];
Ext.onReady(function() { return 1; });
