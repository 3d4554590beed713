"""What may be done with objects: create, update, patch, delete, bind, evict and scale, under the rules of the API."""
